/** Reads calls for the endpoints. A function that finds a mistake throws the response, and the router sends it. */
import { readBytes } from '../core/base/body.ts'
import { parsedJson } from '../core/base/json.ts'
import { jsonFlaw } from '../core/base/json-flaw.ts'
import type { Policy } from '../core/config/parse.ts'
import type { Call } from '../core/endpoint.ts'
import { policyOf } from '../core/program/explicit-key.ts'
import { bodySources } from '../core/request/body-sources.ts'
import { problem } from '../core/respond/response.ts'
import { badRequest, unprocessable } from './problems.ts'
import { checkedBody, type Shape } from './shapes.ts'

const MAX_BYTES = 64 * 1024
const MAX_LEVELS = 8

/** Finds the policy whose name begins the rest of the path. @throws {Response} 404 without one */
export function policyIn({ rules, rest }: Call): Policy {
  const policy = policyOf(rules, rest.split('/', 1)[0]!)
  if (policy) return policy
  throw problem(404, { title: 'Not Found', detail: 'There is no policy with this name.' })
}

/** Reads the body of a call by its shape. @throws {Response} 422, or as of `readJson` */
export async function bodyOf<T>(request: Request, shape: Shape<T>): Promise<T> {
  const { output, problems } = checkedBody(shape, await readJson(request))
  if (problems) throw unprocessable(problems)
  return output
}

/** @throws {Response} 413 above 64 KiB; 400 if the body is not UTF-8 or not JSON, has more than 8 levels, or a member twice */
async function readJson(request: Request): Promise<unknown> {
  // A request to a server of Node has its body here. A parser of the app may have read it before.
  const source = bodySources.get(request)?.()
  if (source && 'parsed' in source) return source.parsed
  if (source && 'unreadable' in source) throw badRequest(`The body: ${source.unreadable}.`)
  const bytes = await readBytes(source?.stream ?? request.body, MAX_BYTES)
  if (!bytes) {
    const detail = `The body is larger than ${MAX_BYTES / 1024} KiB.`
    throw problem(413, { title: 'Content Too Large', detail })
  }
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false }).decode(bytes)
  } catch {
    throw badRequest('The body is not valid UTF-8.')
  }
  const json = parsedJson(text)
  if (json === undefined) {
    const isEmpty = text.trim() === ''
    throw badRequest(isEmpty ? 'The body is empty. Send JSON.' : 'The body is not valid JSON.')
  }
  // Before the schemas, which may walk over the value recursively.
  const flaw = jsonFlaw(text, MAX_LEVELS)
  if (flaw) throw badRequest(`The body has ${flaw}.`)
  return json
}
