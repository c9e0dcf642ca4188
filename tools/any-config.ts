/**
 * The deployed Worker with its configuration as JSON in the variable CONFIG, so that tests need one build for all configurations. The
 * variable OBSERVE has the options of `observe()`, and BODIES those of `bodies()`. Defaults to a configuration without both. The JSON of
 * the features in `use` has their names. Those that a gateway has by default are left out.
 */
import openapi from '../src/api/openapi.json' with { type: 'json' }
import { bodies } from '../src/features/bodies/index.ts'
import { cluster } from '../src/features/cluster/index.ts'
import { graphqlCost } from '../src/features/graphql/graphql.ts'
import { type JwtOptions, jwt } from '../src/features/jwt/index.ts'
import { observe } from '../src/features/observe/index.ts'
import { type ConfigOptions, createGateway } from '../src/index.ts'

/** A configuration as JSON: `jwt` has the options of `jwt()`. */
export type JsonConfig = ConfigOptions & { jwt?: JwtOptions | undefined }

interface Settings {
  CONFIG: string
  OBSERVE?: string
  BODIES?: string
}

/** Makes the gateway of these variables. */
export function gatewayOf({ CONFIG, OBSERVE, BODIES }: Settings) {
  const { jwt: verified, use = [], ...config }: JsonConfig = JSON.parse(CONFIG)
  const features = use.flatMap(({ name }) => (name === 'cluster' ? cluster() : []))
  return createGateway(
    {
      ...config,
      use: [
        ...features,
        ...(verified ? [jwt(verified)] : []),
        ...(OBSERVE ? [observe(JSON.parse(OBSERVE))] : []),
        ...(BODIES ? [bodies({ ...JSON.parse(BODIES), graphql: graphqlCost() })] : []),
      ],
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
