import { OPEN_METRICS } from '../../src/features/observe/open-metrics.ts'
import { examples } from './examples.ts'
import { ref, type SchemaName } from './schemas.ts'

const header = (...names: string[]) =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))

const fields = header('RateLimit-Policy', 'RateLimit')

/** The problems that several endpoints share, by status. */
const problems = {
  400: { description: 'The body is not valid JSON, or Idempotency-Key is invalid.' },
  401: {
    description: 'The token is missing or not valid.',
    headers: header('WWW-Authenticate'),
  },
  403: { description: 'The token has another scope.' },
  404: {
    description:
      'The policy does not exist, the Worker has no token for this endpoint, or the configuration has no `observe`.',
  },
  405: { description: 'The endpoint does not support this method.', headers: header('Allow') },
  409: {
    description:
      'The policy has no bans, no list of bans or no overrides, or does not apply to the request.',
  },
  413: { description: 'The body is larger than 64 KiB.' },
  422: {
    description: 'The body or a parameter is invalid. `errors` lists each error with its path.',
  },
  503: { description: 'The store gave no answer. Of /metrics: the Analytics Engine gave none.' },
} satisfies Record<number, { description: string; headers?: object }>

const problemJson = { 'application/problem+json': { schema: ref('Problem') } }

/** The shared problems as components. */
export const problemResponses = Object.fromEntries(
  Object.entries(problems).map(([status, response]) => [
    `P${status}`,
    { ...response, content: problemJson },
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

/** The scopes of tokens that may call an operation. */
const by = (...scopes: string[]) => ({
  security: scopes.flatMap((scope) => [{ bearer: [scope] }, { token: [scope] }]),
})

const idempotencyKey = { parameters: [{ $ref: '#/components/parameters/idempotencyKey' }] }
const replayed = header('Idempotent-Replayed')

const answerOf = {
  LimitStatus: 'The status of the limits after the operation.',
  Trial: 'Whether and how the policy applies to the request.',
}

const operation = (
  operationId: string,
  summary: string,
  input: { schema: SchemaName; example: object },
  answer: keyof typeof answerOf,
  ...statuses: (keyof typeof problems)[]
) => ({
  parameters: [{ $ref: '#/components/parameters/policy' }],
  post: {
    operationId,
    summary,
    ...by('operate'),
    requestBody: body(ref(input.schema), { example: input.example }),
    responses: {
      200: { description: answerOf[answer], content: json(ref(answer)) },
      ...answers(400, 401, 403, 404, 405, ...statuses, 413, 422),
    },
  },
})
const limitOfKey = (
  operationId: string,
  summary: string,
  ...statuses: (keyof typeof problems)[]
) => ({
  operationId,
  summary,
  ...by('operate'),
  responses: {
    200: { description: answerOf.LimitStatus, content: json(ref('LimitStatus')) },
    ...answers(400, 401, 403, 404, 405, 409, ...statuses, 422, 503),
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
    description: 'Accepts any method.',
    security: [{ token: ['api'] }],
    parameters: parameters.map((name) => ({ $ref: `#/components/parameters/${name}` })),
    responses: {
      200: { description: 'The request is allowed.', headers: fields },
      ...answers(401, 404),
      400: refusal('The fields do not describe a valid request.'),
      ...refusals,
    },
  },
})

const counts = (
  operationId: string,
  summary: string,
  content: object,
  ...statuses: (keyof typeof problems)[]
) => ({
  get: {
    operationId,
    summary,
    description: 'Exists only if the configuration has `observe`.',
    ...by('operate'),
    responses: {
      200: { description: 'The counts.', content },
      ...answers(401, 403, 404, 405, ...statuses),
    },
  },
})

const forwarded = ['method', 'uri', 'host', 'proto', 'for']
const refusalFields = ['RateLimit-Policy', 'RateLimit', 'Retry-After', 'Sluice-Status']
const limited = {
  429: refusal('The request exceeds a limit, or its key is banned.', ...refusalFields),
}
const denied = {
  403: refusal('The request is denied, or the token has another scope.', 'Sluice-Status'),
  503: refusal('The store gave no answer, and onStoreError is deny.', 'Sluice-Status'),
}
const forbidden = (description: string) => ({ 403: refusal(description, ...refusalFields) })

export const paths = {
  '/decide': {
    post: {
      operationId: 'decide',
      summary: 'Decide and charge requests',
      description:
        'Decides one ask, or a list of up to 100 asks in one round trip. The mode peek decides without a charge.',
      ...by('api'),
      ...idempotencyKey,
      requestBody: body(oneOrMany('Ask'), {
        examples: { one: { value: examples.ask }, list: { value: examples.asks } },
      }),
      responses: {
        200: {
          description:
            'The request is allowed. For a list, the decisions in the order of the list, allowed or not.',
          headers: { ...fields, ...replayed },
          content: json(oneOrMany('Decision'), { example: examples.allowed }),
        },
        429: {
          description: 'The request is refused.',
          headers: { ...fields, ...header('Retry-After'), ...replayed },
          content: json(ref('Decision')),
        },
        ...answers(400, 401, 403, 404, 405, 413, 422),
      },
    },
  },
  '/refund': {
    post: {
      operationId: 'refund',
      summary: 'Refund a charge',
      description:
        'Returns all or some of the charged units, and releases slots. Accepts one refund, or a list of up to 100.',
      ...by('api', 'operate'),
      ...idempotencyKey,
      requestBody: body(oneOrMany('Refund'), { example: examples.refund }),
      responses: {
        200: {
          description: 'The status of the limits after the refund.',
          headers: replayed,
          content: json(oneOrMany('LimitStatus')),
        },
        ...answers(400, 401, 403, 404, 405, 413, 422, 503),
      },
    },
  },
  '/settle': {
    post: {
      operationId: 'settle',
      summary: 'Settle a charge',
      description:
        'Returns the units of a decision that were not used, or charges those that were used beyond it, and releases its slots. Accepts one charge, or a list of up to 100.',
      ...by('api', 'operate'),
      ...idempotencyKey,
      requestBody: body(oneOrMany('Settlement'), { example: examples.settlement }),
      responses: {
        200: {
          description: 'The status of the limits that have changed.',
          headers: replayed,
          content: json(oneOrMany('LimitStatus')),
        },
        ...answers(400, 401, 403, 404, 405, 413, 422, 503),
      },
    },
  },
  '/auth': forwardAuth('auth', 'Decide a request for a reverse proxy', forwarded, {
    ...limited,
    ...denied,
  }),
  '/auth/nginx': forwardAuth(
    'authNginx',
    'Decide a request for nginx',
    forwarded,
    forbidden(
      'The request is refused: every refusal is a 403 without a body. Or the token has another scope.',
    ),
  ),
  '/auth/envoy/{target}': forwardAuth(
    'authEnvoy',
    'Decide a request for Envoy',
    ['target', 'host', 'proto', 'for'],
    {
      ...limited,
      ...forbidden(
        'The request is denied, the store gave no answer, or the token has another scope.',
      ),
    },
  ),
  '/policies': {
    get: {
      operationId: 'policies',
      summary: 'List the policies and check the database',
      ...by('operate'),
      responses: {
        200: {
          description: 'The current policies, and whether the database answers.',
          content: json({
            type: 'object',
            properties: {
              policies: { type: 'array', items: ref('PolicyReport') },
              store: ref('StoreReport'),
            },
            required: ['policies', 'store'],
          }),
        },
        ...answers(401, 403, 404, 405),
      },
    },
  },
  '/stats': counts('stats', 'Retrieve the counts of decisions and calls', json(ref('Stats'))),
  '/metrics': counts(
    'metrics',
    'Retrieve the counts as OpenMetrics 1.0',
    { [OPEN_METRICS]: { schema: { type: 'string' } } },
    503,
  ),
  '/policies/{name}/peek': operation(
    'peek',
    'Retrieve the status of a key',
    onTarget,
    'LimitStatus',
    409,
    503,
  ),
  '/policies/{name}/reset': operation(
    'reset',
    'Reset the quota of a key',
    onTarget,
    'LimitStatus',
    409,
    503,
  ),
  '/policies/{name}/ban': operation('ban', 'Ban a key', onBan, 'LimitStatus', 409, 503),
  '/policies/{name}/unban': operation('unban', 'End a ban', onTarget, 'LimitStatus', 409, 503),
  '/policies/{name}/try': operation(
    'try',
    'Check how a policy applies to a request',
    onTry,
    'Trial',
  ),
  '/policies/{name}/bans': {
    parameters: [
      { $ref: '#/components/parameters/policy' },
      {
        name: 'after',
        in: 'query',
        description: '`next` of the page before. Defaults to the first page.',
        schema: { type: 'string' },
      },
    ],
    get: {
      operationId: 'bans',
      summary: 'List the keys that are banned now',
      ...by('operate'),
      responses: {
        200: { description: 'A page of bans.', content: json(ref('BanPage')) },
        ...answers(401, 403, 404, 405, 409, 422, 503),
      },
    },
  },
  '/policies/{name}/keys': {
    parameters: [{ $ref: '#/components/parameters/policy' }],
    get: {
      operationId: 'overrides',
      summary: 'List the keys with a limit of their own',
      ...by('operate'),
      responses: {
        200: { description: 'The limits that are set.', content: json(ref('OverrideList')) },
        ...answers(401, 403, 404, 405, 409, 503),
      },
    },
  },
  '/policies/{name}/keys/{key}/limit': {
    parameters: [
      { $ref: '#/components/parameters/policy' },
      { $ref: '#/components/parameters/key' },
    ],
    get: limitOfKey('getLimit', 'Retrieve the limit of a key'),
    put: {
      ...limitOfKey('setLimit', 'Set the limit of a key', 413),
      requestBody: body(ref('Override'), { example: examples.override }),
    },
    delete: limitOfKey('removeLimit', 'Remove the limit that is set for a key'),
  },
  '/openapi.json': {
    get: {
      operationId: 'openapi',
      summary: 'Retrieve this OpenAPI description',
      security: [],
      responses: {
        200: { description: 'An OpenAPI 3.1 document.', content: json({ type: 'object' }) },
        ...answers(404, 405),
      },
    },
  },
}
