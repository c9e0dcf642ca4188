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

/** The description of the decision API, by the schemas that the Worker checks bodies with. */
export const document = () => ({
  openapi: '3.1.1',
  info: { title: 'Sluice', version: '1', summary: 'Rate limits, decided for callers' },
  servers: [{ url: '/_sluice/v1' }],
  paths,
  components: {
    securitySchemes: {
      bearer: { type: 'http', scheme: 'bearer', description: 'of scope api or operate' },
      token: { type: 'apiKey', in: 'header', name: 'Sluice-Token' },
    },
    parameters: {
      policy: inPath('name', 'a policy'),
      target: inPath('target', 'path and query, as they came'),
      idempotencyKey: {
        name: 'Idempotency-Key',
        in: 'header',
        description: 'for 60 s a repeat gets the same answer, charged once',
        schema: { type: 'string', pattern: '^[!-~]{1,255}$' },
      },
      method: inHeader('X-Forwarded-Method', 'its method', true),
      uri: inHeader('X-Forwarded-Uri', 'its path and query', true),
      host: inHeader('X-Forwarded-Host', 'its host'),
      proto: inHeader('X-Forwarded-Proto', 'https where absent'),
      for: inHeader('X-Forwarded-For', "the last is the client's address"),
    },
    headers: {
      'RateLimit-Policy': text('draft-ietf-httpapi-ratelimit-headers-11, or as configured'),
      RateLimit: text('the same'),
      'Retry-After': { description: 'seconds', schema: { type: 'integer' } },
      'Idempotent-Replayed': text('true: of an earlier call'),
      'Sluice-Status': text('429, 403 or 503: what the refusal would have been'),
      'WWW-Authenticate': text('Bearer'),
      Allow: text('methods'),
    },
    responses: problemResponses,
    schemas: jsonSchemas(),
  },
})

/** As it stands in src/api/openapi.json: on one line, since the Worker carries it. */
export const written = () => `${JSON.stringify(document())}\n`
