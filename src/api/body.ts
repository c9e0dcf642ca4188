import { readBytes } from '../base/body.ts'
import { problem } from '../http/response.ts'
import { badRequest } from './problems.ts'

const MAX_BYTES = 64 * 1024
const MAX_DEPTH = 8

/** The JSON of a body; or what is wrong with it, as a problem: 413 above 64 KiB, 400 where it is no UTF-8, no JSON, or nested deeper than 8. */
export async function readJson(request: Request): Promise<{ json: unknown } | Response> {
  const bytes = await readBytes(request.body, MAX_BYTES)
  if (!bytes) return tooLarge()
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false }).decode(bytes)
  } catch {
    return badRequest('The body is no UTF-8.')
  }
  // Before it is parsed: what walks over what comes of it may be recursive.
  if (depthOf(text) > MAX_DEPTH) return badRequest(`The body is nested deeper than ${MAX_DEPTH}.`)
  try {
    return { json: JSON.parse(text) }
  } catch {
    return badRequest(
      text.trim() === '' ? 'There is no body: JSON is expected.' : 'The body is no JSON.',
    )
  }
}

const tooLarge = () =>
  problem(413, {
    title: 'Content Too Large',
    detail: `The body is larger than ${MAX_BYTES / 1024} KiB.`,
  })

/** How deep brackets are nested in a JSON text, those in its strings not counted. By hand: a regular expression may take time that grows with the square. */
function depthOf(text: string): number {
  let [depth, deepest, quoted] = [0, 0, false]
  for (let i = 0; i < text.length; i++) {
    const character = text[i]!
    if (character === '"') quoted = !quoted
    else if (quoted) i += character === '\\' ? 1 : 0
    else if (character === '[' || character === '{') deepest = Math.max(deepest, ++depth)
    else if (character === ']' || character === '}') depth -= 1
  }
  return deepest
}
