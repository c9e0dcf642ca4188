import { readBytes } from '../base/body.ts'
import { problem } from '../http/response.ts'
import { badRequest } from './problems.ts'

const MAX_BYTES = 64 * 1024
const MAX_DEPTH = 8

/**
 * Reads a JSON body.
 * @returns a problem if the body is invalid: 413 above 64 KiB; 400 if it is not UTF-8, not JSON, or nested more than 8 levels deep
 */
export async function readJson(request: Request): Promise<{ json: unknown } | Response> {
  const bytes = await readBytes(request.body, MAX_BYTES)
  if (!bytes) return tooLarge()
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false }).decode(bytes)
  } catch {
    return badRequest('The body is not valid UTF-8.')
  }
  // Checked before parsing, because the schemas may walk over the parsed value recursively.
  if (depthOf(text) > MAX_DEPTH) {
    return badRequest(`The body is nested more than ${MAX_DEPTH} levels deep.`)
  }
  try {
    return { json: JSON.parse(text) }
  } catch {
    return badRequest(
      text.trim() === '' ? 'The body is empty. Send JSON.' : 'The body is not valid JSON.',
    )
  }
}

const tooLarge = () =>
  problem(413, {
    title: 'Content Too Large',
    detail: `The body is larger than ${MAX_BYTES / 1024} KiB.`,
  })

/** Returns the nesting depth of a JSON text, ignoring brackets in strings. A regular expression could take quadratic time. */
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
