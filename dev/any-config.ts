/** The deployed Worker with its configuration as JSON in the variable CONFIG, so that tests need one build for all configurations. */
import { createGateway } from '../src/index.ts'

let gateway: ReturnType<typeof createGateway> | undefined

export default {
  fetch(request: Request, env: { CONFIG: string }, context: never) {
    gateway ??= createGateway(JSON.parse(env.CONFIG))
    return gateway.fetch(request, env, context)
  },
}
