/** Refusals in the error formats of JSON-RPC and GraphQL. */
import { describe, expect, test } from 'vitest'
import { errorBody } from '../../../../src/features/bodies/error-body.ts'
import type { Content } from '../../../../src/features/bodies/read.ts'

const LIMITED = {
  type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
  status: 429,
  title: 'Quota exceeded',
  detail: 'Try again in 57609 ms.',
  retryAfterMs: 57_609,
  'violated-policies': ['tools'],
}
const DENIED = {
  type: 'about:blank',
  status: 403,
  title: 'Forbidden',
  detail: 'The request is on a deny list.',
}
const value = (value: unknown): Content => ({ value })
const call = (id: unknown) => ({ jsonrpc: '2.0', id, method: 'tools/call' })
const data = { status: 429, retryAfterMs: 57_609, 'violated-policies': ['tools'] }
const errorFor = (id: unknown) => ({
  jsonrpc: '2.0',
  id,
  error: { code: -32005, message: 'Quota exceeded. Try again in 57609 ms.', data },
})

describe('JSON-RPC', () => {
  const rpc = (content: Content, problem: Record<string, unknown> = LIMITED) =>
    errorBody('json-rpc', content, problem, '*/*')

  test.each<[string, unknown, unknown]>([
    ['A call', call(7), errorFor(7)],
    ['A call whose id is a text', call('a'), errorFor('a')],
    ['A call whose id is 0', call(0), errorFor(0)],
    ['A batch', [call(1), call('b')], [errorFor(1), errorFor('b')]],
    [
      'A batch with a notification and a response',
      [{ method: 'a' }, { id: 3, result: 1 }, call(2)],
      [errorFor(2)],
    ],
  ])('%s gets an error with its id.', (_, request, body) => {
    expect(rpc(value(request))).toEqual({ body, type: 'application/json', isAnswer: true })
  })

  test.each<[string, Content]>([
    ['A notification', value({ jsonrpc: '2.0', method: 'notifications/initialized' })],
    ['A response', value({ jsonrpc: '2.0', id: 1, result: {} })],
    ['A call whose id is an object', value(call({}))],
    ['A batch of notifications', value([{ method: 'a' }, { method: 'b' }])],
    ['A batch of 101 calls', value(Array.from({ length: 101 }, (_, id) => call(id)))],
    ['An empty batch', value([])],
    ['A text', value('call')],
    ['An unreadable body', { unreadable: 'it is larger than 9 bytes' }],
    ['A request without a body', undefined],
  ])('%s gets an error without an id, which is no answer to it.', (_, content) => {
    const body = errorFor(null)
    expect(rpc(content)).toEqual({ body, type: 'application/json', isAnswer: false })
  })

  test('A batch of 100 calls gets 100 errors.', () => {
    const calls = Array.from({ length: 100 }, (_, id) => call(id))
    expect(rpc(value(calls)).body).toEqual(calls.map(({ id }) => errorFor(id)))
  })

  test('A refusal for another reason than a limit has another code, so that its client does not wait.', () => {
    expect(rpc(value(call(1)), DENIED).body).toEqual({
      jsonrpc: '2.0',
      id: 1,
      error: {
        code: -32000,
        message: 'Forbidden. The request is on a deny list.',
        data: { status: 403 },
      },
    })
  })
})

describe('GraphQL', () => {
  const graphql = (content: Content, accept = '*/*', problem: Record<string, unknown> = LIMITED) =>
    errorBody('graphql', content, problem, accept)
  const answer = {
    errors: [
      {
        message: 'Quota exceeded. Try again in 57609 ms.',
        extensions: {
          code: 'RATE_LIMITED',
          retryAfterMs: 57_609,
          'violated-policies': ['tools'],
        },
      },
    ],
  }

  test('A document gets an error with the time to wait.', () => {
    const body = { body: answer, type: 'application/json', isAnswer: true }
    expect(graphql(value({ query: '{ a }' }))).toEqual(body)
  })

  test('Each document of a batch gets an error.', () => {
    expect(graphql(value([{ query: '{ a }' }, { query: '{ b }' }])).body).toEqual([answer, answer])
  })

  test.each<[string, Content]>([
    ['An unreadable body', { unreadable: 'it is late' }],
    ['A document in the URL', undefined],
  ])('%s gets an error that is no answer to a body.', (_, content) => {
    expect(graphql(content)).toMatchObject({ body: answer, isAnswer: false })
  })

  test('A client that names the media type of GraphQL gets it.', () => {
    const accept = 'application/graphql-response+json; charset=utf-8, application/json; q=0.9'
    const { type } = graphql(value({ query: '{ a }' }), accept)
    expect(type).toBe('application/graphql-response+json')
  })

  test.each([
    [403, 'FORBIDDEN'],
    [503, 'SERVICE_UNAVAILABLE'],
  ])('A refusal with %i has the code %s.', (status, code) => {
    const { body } = graphql(undefined, '*/*', { ...DENIED, status })
    expect(body).toMatchObject({ errors: [{ extensions: { code } }] })
  })
})
