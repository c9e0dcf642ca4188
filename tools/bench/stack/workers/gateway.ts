/** The whole Worker in front of an origin. */
import { built, createWorker, denialCache, shield } from '../../../../src/built/built.ts'
import type { WorkerEnv } from '../variants.ts'

let gateway: ReturnType<typeof createWorker> | undefined

export default {
  fetch(request: Request, env: WorkerEnv, context: never) {
    gateway ??= createWorker(
      built({ config: JSON.parse(env.settings), features: [denialCache, shield], fits: [] }),
    )
    return gateway.fetch(request, env, context)
  },
}
