import { examples } from './examples.ts'
import { ref, type SchemaName } from './schemas.ts'

const header = (...names: string[]) =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))

const fields = header('RateLimit-Policy', 'RateLimit')

/** Problems that are the same everywhere, by status. */
const problems = {
  400: { description: 'no JSON' },
  401: { description: 'no such token', headers: header('WWW-Authenticate') },
  403: { description: 'a token of the other scope' },
  404: { description: 'no such policy, or closed' },
  405: { description: 'another method', headers: header('Allow') },
  409: { description: 'it bans nobody, or does not meet the request' },
  413: { description: 'above 64 KiB' },
  422: {
    description: 'not what is expected',
  },
  429: { description: "the caller's own limit", headers: header('Retry-After') },
  503: { description: 'the store gave no answer' },
} satisfies Record<number, { description: string; headers?: object }>

const problemJson = { 'application/problem+json': { schema: ref('Problem') } }

/** The components that the answers below point at. */
export const problemResponses = Object.fromEntries(
  Object.entries(problems).map(([status, told]) => [
    `P${status}`,
    { ...told, content: problemJson },
  ]),
)

const answers = (...statuses: (keyof typeof problems)[]) =>
  Object.fromEntries(
    statuses.map((status) => [status, { $ref: `#/components/responses/P${status}` }]),
  )

const json = (schema: object, more: object = {}) => ({ 'application/json': { schema, ...more } })
const oneOrMany = (name: SchemaName) => ({ anyOf: [ref(name), manyOf(name)] })
const manyOf = (name: SchemaName) => ({
  type: 'array',
  items: ref(name),
  minItems: 1,
  maxItems: 100,
})
const body = (schema: object, more?: object) => ({ required: true, content: json(schema, more) })

/** Who may call, by token. */
const by = (...scopes: string[]) => ({
  security: scopes.flatMap((scope) => [{ bearer: [scope] }, { token: [scope] }]),
})

const idempotencyKey = { parameters: [{ $ref: '#/components/parameters/idempotencyKey' }] }
const replayed = header('Idempotent-Replayed')

const operation = (
  operationId: string,
  summary: string,
  asked: { schema: SchemaName; example: object },
  answer: SchemaName,
  ...statuses: (keyof typeof problems)[]
) => ({
  parameters: [{ $ref: '#/components/parameters/policy' }],
  post: {
    operationId,
    summary,
    ...by('operate'),
    requestBody: body(ref(asked.schema), { example: asked.example }),
    responses: {
      200: { description: 'done', content: json(ref(answer)) },
      ...answers(400, 401, 403, 404, 405, ...statuses, 413, 422, 429),
    },
  },
})
const onTarget = { schema: 'Target', example: examples.target } as const
const onBan = { schema: 'Ban', example: examples.ban } as const
const onTry = { schema: 'Try', example: examples.try } as const

const refusal = (description: string, ...names: string[]) => ({
  description,
  ...(names.length > 0 && { headers: header(...names) }),
  content: problemJson,
})

const forwardAuth = (
  operationId: string,
  summary: string,
  parameters: string[],
  refusals: Record<number, object>,
) => ({
  get: {
    operationId,
    summary,
    description: 'any method',
    security: [{ token: ['api'] }],
    parameters: parameters.map((name) => ({ $ref: `#/components/parameters/${name}` })),
    responses: {
      200: { description: 'it may pass', headers: fields },
      ...answers(401, 404),
      400: refusal('the fields tell of no request'),
      ...refusals,
    },
  },
})

const forwarded = ['method', 'uri', 'host', 'proto', 'for']
const told = ['RateLimit-Policy', 'RateLimit', 'Retry-After', 'Sluice-Status']
const limited = { 429: refusal('past a limit, or banned', ...told) }
const denied = {
  403: refusal('denied; or a token of the other scope', 'Sluice-Status'),
  503: refusal('the store gave no answer', 'Sluice-Status'),
}
const forbidden = (description: string) => ({ 403: refusal(description, ...told) })

export const paths = {
  '/decide': {
    post: {
      operationId: 'decide',
      summary: 'Decide one ask, or a list',
      ...by('api'),
      ...idempotencyKey,
      requestBody: body(oneOrMany('Ask'), {
        examples: { one: { value: examples.ask }, list: { value: examples.asks } },
      }),
      responses: {
        200: {
          description: 'allowed; or the decisions of a list, in its order',
          headers: { ...fields, ...replayed },
          content: json(oneOrMany('Decision'), { example: examples.allowed }),
        },
        429: {
          description: "refused; as a problem, the caller's own limit",
          headers: { ...fields, ...header('Retry-After'), ...replayed },
          content: { ...json(ref('Decision')), ...problemJson },
        },
        ...answers(400, 401, 403, 404, 405, 413, 422),
      },
    },
  },
  '/refund': {
    post: {
      operationId: 'refund',
      summary: 'Give back what was taken, or part of it',
      ...by('api', 'operate'),
      ...idempotencyKey,
      requestBody: body(oneOrMany('Refund'), { example: examples.refund }),
      responses: {
        200: {
          description: 'how the limits stand',
          headers: replayed,
          content: json(oneOrMany('LimitStatus')),
        },
        ...answers(400, 401, 403, 404, 405, 413, 422, 429, 503),
      },
    },
  },
  '/auth': forwardAuth('auth', 'May a request pass', forwarded, { ...limited, ...denied }),
  '/auth/nginx': forwardAuth(
    'authNginx',
    'The same; each refusal is 403',
    forwarded,
    forbidden('refused, without a body; or a token of the other scope'),
  ),
  '/auth/envoy/{target}': forwardAuth(
    'authEnvoy',
    "The same; the client's path and query follow",
    ['target', 'host', 'proto', 'for'],
    {
      ...limited,
      ...forbidden('denied, or the store gave no answer; or a token of the other scope'),
    },
  ),
  '/policies': {
    get: {
      operationId: 'policies',
      summary: 'The policies, and whether the store answers',
      ...by('operate'),
      responses: {
        200: {
          description: 'both',
          content: json({
            type: 'object',
            properties: {
              policies: { type: 'array', items: ref('PolicyReport') },
              store: ref('StoreReport'),
              shards: {
                type: 'array',
                description: 'each of several databases',
                items: {
                  allOf: [
                    ref('StoreReport'),
                    { properties: { name: { type: 'string' } }, required: ['name'] },
                  ],
                },
              },
            },
            required: ['policies', 'store'],
          }),
        },
        ...answers(401, 403, 404, 405, 429),
      },
    },
  },
  '/policies/{name}/peek': operation('peek', 'How a key stands', onTarget, 'LimitStatus', 409, 503),
  '/policies/{name}/reset': operation(
    'reset',
    'Forget what a key took',
    onTarget,
    'LimitStatus',
    409,
    503,
  ),
  '/policies/{name}/ban': operation('ban', 'Ban a key', onBan, 'LimitStatus', 409, 503),
  '/policies/{name}/unban': operation('unban', 'End a ban', onTarget, 'LimitStatus', 409, 503),
  '/policies/{name}/try': operation('try', 'What a policy makes of a request', onTry, 'Trial'),
  '/openapi.json': {
    get: {
      operationId: 'openapi',
      summary: 'This description',
      security: [],
      responses: {
        200: { description: 'OpenAPI 3.1', content: json({ type: 'object' }) },
        ...answers(404, 405),
      },
    },
  },
}
