import { readBytes } from '../core/base/body.ts'
import { jsonFlaw } from '../core/base/json-flaw.ts'
import { bodySources } from '../core/request/body-sources.ts'
import { problem } from '../core/respond/response.ts'
import { badRequest } from './problems.ts'

const MAX_BYTES = 64 * 1024
const MAX_LEVELS = 8

/**
 * Reads a JSON body.
 * @returns a problem if the body is invalid: 413 above 64 KiB; 400 if it is not UTF-8 or not JSON, has more than 8 levels, or a member
 * twice
 */
export async function readJson(request: Request): Promise<{ json: unknown } | Response> {
  // A request to a server of Node has its body here. A parser of the app may have read it before.
  const source = bodySources.get(request)?.()
  if (source && 'parsed' in source) return { json: source.parsed }
  if (source && 'unreadable' in source) return badRequest(`The body: ${source.unreadable}.`)
  const bytes = await readBytes(source?.stream ?? request.body, MAX_BYTES)
  if (!bytes) return tooLarge()
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false }).decode(bytes)
  } catch {
    return badRequest('The body is not valid UTF-8.')
  }
  try {
    const json: unknown = JSON.parse(text)
    // Before the schemas, which may walk over the value recursively.
    const flaw = jsonFlaw(text, MAX_LEVELS)
    return flaw ? badRequest(`The body has ${flaw}.`) : { json }
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
