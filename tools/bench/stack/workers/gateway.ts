/** The whole Worker in front of an origin. */
import { createGateway } from '../../../../src/index.ts'
import type { WorkerEnv } from '../variants.ts'

let gateway: ReturnType<typeof createGateway> | undefined

export default {
  fetch(request: Request, env: WorkerEnv, context: never) {
    gateway ??= createGateway(JSON.parse(env.settings))
    return gateway.fetch(request, env, context)
  },
}
