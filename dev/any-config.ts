/**
 * The deployed Worker with its configuration as JSON in the variable CONFIG, so that tests need one build for all configurations. The
 * variable OBSERVE has the options of `observe()`, and BODIES those of `bodies()`. Defaults to a configuration without both. It always has
 * `refusals()` and `overrides()`. The JSON of a result of `shards()` has its arguments, and that of `cluster()` is an empty object.
 */
import openapi from '../src/api/openapi.json' with { type: 'json' }
import { bodies } from '../src/features/bodies/index.ts'
import { graphqlCost } from '../src/features/graphql/graphql.ts'
import { type JwtOptions, jwt } from '../src/features/jwt/index.ts'
import { leases } from '../src/features/leases/index.ts'
import { observe } from '../src/features/observe/index.ts'
import { overrides } from '../src/features/overrides/index.ts'
import { refusals } from '../src/features/refusals/index.ts'
import { cluster, shards } from '../src/features/shards/index.ts'
import { type ConfigOptions, createGateway } from '../src/index.ts'

/** A configuration as JSON: `jwt` has the options of `jwt()`. */
export type JsonConfig = Omit<ConfigOptions, 'jwt'> & { jwt?: JwtOptions | undefined }

const withJwt = ({ jwt: options, ...config }: JsonConfig): ConfigOptions =>
  options ? { ...config, jwt: jwt(options) } : config

interface Settings {
  CONFIG: string
  OBSERVE?: string
  BODIES?: string
}

/** Makes the gateway of these variables. */
export function gatewayOf({ CONFIG, OBSERVE, BODIES }: Settings) {
  const { shards: layout, cluster: isCluster, ...config } = JSON.parse(CONFIG)
  return createGateway(
    {
      ...withJwt(config),
      ...(layout && { shards: shards(layout.names) }),
      ...(isCluster && { cluster: cluster() }),
      // As in a project: only if the configuration, or a live document, may need it.
      ...(/"(lease|live)":/.test(CONFIG) && { leases: leases() }),
      overrides: overrides(),
      refusals: refusals(),
      ...(OBSERVE && { observe: observe(JSON.parse(OBSERVE)) }),
      ...(BODIES && { bodies: bodies({ ...JSON.parse(BODIES), graphql: graphqlCost() }) }),
    },
    { openapi },
  )
}

let gateway: ReturnType<typeof createGateway> | undefined

export default {
  fetch(request: Request, env: Settings, context: never) {
    gateway ??= gatewayOf(env)
    return gateway.fetch(request, env as never, context)
  },
}
