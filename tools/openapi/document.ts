import { paths, problemResponses } from './paths.ts'
import { jsonSchemas } from './schemas.ts'

const text = (description: string) => ({ description, schema: { type: 'string' } })
const inHeader = (name: string, description: string, required = false) => ({
  name,
  in: 'header',
  ...(required && { required }),
  ...text(description),
})
const inPath = (name: string, description: string) => ({
  name,
  in: 'path',
  required: true,
  ...text(description),
})

/** The OpenAPI description of the decision API, generated from the schemas that check bodies in the Worker. */
export const document = () => ({
  openapi: '3.1.1',
  info: {
    title: 'Sluice decision API',
    version: '1',
    summary: 'Makes rate limit decisions for services that do not run behind the Worker.',
  },
  servers: [{ url: '/_sluice/v1' }],
  paths,
  components: {
    securitySchemes: {
      bearer: {
        type: 'http',
        scheme: 'bearer',
        description:
          'A token of the scope api (SLUICE_API_TOKEN) or operate (SLUICE_OPERATE_TOKEN).',
      },
      token: {
        type: 'apiKey',
        in: 'header',
        name: 'Sluice-Token',
        description: 'The same tokens, if Authorization has another use.',
      },
    },
    parameters: {
      policy: inPath('name', 'The name of the policy.'),
      key: inPath(
        'key',
        'The values of the key, percent-encoded and separated by commas. Or `subject:` and a subject, as GET /stats reports it.',
      ),
      target: inPath('target', "The path and query of the client's request, unchanged."),
      idempotencyKey: {
        name: 'Idempotency-Key',
        in: 'header',
        description:
          'A unique key of this call. For 60 s, a repeated call with the same key returns the same answer and charges nothing.',
        schema: { type: 'string', pattern: '^[!-~]{1,255}$' },
      },
      method: inHeader('X-Forwarded-Method', "The method of the client's request.", true),
      uri: inHeader('X-Forwarded-Uri', "The path and query of the client's request.", true),
      host: inHeader(
        'X-Forwarded-Host',
        "The host of the client's request. Defaults to the host of the call.",
      ),
      proto: inHeader('X-Forwarded-Proto', 'http or https. Defaults to https.'),
      for: inHeader('X-Forwarded-For', "A list of addresses. The last is the client's address."),
    },
    headers: {
      'RateLimit-Policy': text(
        'The policies that apply, by draft-ietf-httpapi-ratelimit-headers-11. `headers` of the configuration may select other fields.',
      ),
      RateLimit: text('The state of the policy that is closest to exhaustion.'),
      'Retry-After': {
        description: 'The seconds to wait before the next attempt.',
        schema: { type: 'integer' },
      },
      'Idempotent-Replayed': text('`true` if the answer is that of an earlier call.'),
      'Sluice-Status': text('The original status of the refusal: 429, 403 or 503.'),
      'WWW-Authenticate': text('`Bearer`.'),
      Allow: text('The methods of the endpoint.'),
    },
    responses: problemResponses,
    schemas: jsonSchemas(),
  },
})

/** The content of src/api/openapi.json. On one line, because a Worker may contain the file. */
export const serialized = () => `${JSON.stringify(document())}\n`
