/** The Worker of a chaos run on Durable Objects: its objects fail as a POST to `/fault` says. They run in the isolate of the Worker. */
import { createGateway } from '../../../src/index.ts'
import { durableObjects } from '../../../src/stores/durable-objects/index.ts'
import type { ObjectContext } from '../../../src/stores/durable-objects/runtime.ts'
import { SluiceSubject as Subject } from '../../../src/stores/durable-objects/subject.ts'
import { config } from './policies.ts'

export const objectFaults = [
  'memory lost before a decision',
  'killed after a decision',
  'answers after 1 s',
  'storage fails',
  'returns garbage',
] as const
export type ObjectFault = (typeof objectFaults)[number]

type Context = ObjectContext & { abort(reason: string): void }

const garbage = ['', '{}', '<html>', '[1]', '{"replies":[{}]}', '{"replies":[]}']

let fault: ObjectFault | undefined
let turn = 0

/** The object of a subject. Every other call meets a fault that ends the object, so that it also counts in between. */
export class SluiceSubject extends Subject {
  readonly #ctx: Context

  constructor(ctx: Context) {
    const { storage } = ctx
    super({
      blockConcurrencyWhile: (task) => ctx.blockConcurrencyWhile(task),
      storage: {
        kv: {
          get: (key) => storage.kv.get(key),
          list: () => storage.kv.list(),
          delete: (key) => storage.kv.delete(key),
          put(key, value) {
            if (fault === 'storage fails') throw new Error('SQLITE_FULL')
            storage.kv.put(key, value)
          },
        },
        transactionSync: (task) => storage.transactionSync(task),
        getAlarm: () => storage.getAlarm(),
        setAlarm: (time) => storage.setAlarm(time),
        deleteAll: () => storage.deleteAll(),
      },
    })
    this.#ctx = ctx
  }

  override async fetch(request: Request): Promise<Response> {
    turn += 1
    if (fault === 'answers after 1 s') await new Promise((resolve) => setTimeout(resolve, 1000))
    if (fault === 'memory lost before a decision' && turn % 2 === 0) this.#ctx.abort(fault)
    const response = await super.fetch(request)
    if (fault === 'killed after a decision' && turn % 2 === 0) this.#ctx.abort(fault)
    return fault === 'returns garbage' ? new Response(garbage[turn % garbage.length]) : response
  }
}

const gateway = createGateway({ ...config, store: durableObjects() })

export default {
  async fetch(request: Request, env: object, context: never): Promise<Response> {
    if (new URL(request.url).pathname !== '/fault') return gateway.fetch(request, env, context)
    fault = ((await request.text()) || undefined) as ObjectFault | undefined
    return new Response()
  },
}
