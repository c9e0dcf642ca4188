import { script } from '../../../cli/replay/decide/script-parts.ts'
import { network, parseAddress } from '../../../src/core/base/ip.ts'
import type { PolicyOptions } from '../../../src/core/config/options.ts'
import { parseConfig } from '../../../src/core/config/parse.ts'
import type { StoreRequest } from '../../../src/core/connection/store.ts'
import { compiledCalls } from '../../../src/core/connection/upstash/sets.ts'
import { hashedSubjects } from '../../../src/core/decide/subject.ts'
import { defaultFields } from '../../../src/features/defaults.ts'
import { decode, encode } from '../../../test/support/coding.ts'
import { type Contender, LIMIT, type Question, WINDOW_MS } from './contender.ts'

const nameSubject = hashedSubjects('any secret; all subjects have the same length')
/** The subject of a client, as the limiter makes it. */
const subjectOf = (client: string) => nameSubject([['ip', network(parseAddress(client)!, 32, 64)]])

const quota = { limit: LIMIT, window: WINDOW_MS }
const fixed: PolicyOptions = { name: 'per-ip-fixed', algorithm: 'fixed-window', ...quota }
const sliding: PolicyOptions = { name: 'per-ip-sliding', algorithm: 'sliding-window', ...quota }
const log: PolicyOptions = { name: 'per-ip-log', algorithm: 'sliding-log', ...quota }
const bucket: PolicyOptions = { name: 'per-ip-bucket', algorithm: 'token-bucket', ...quota }

/** @param batchSize requests of different clients in one call */
function contender(algorithm: string, options: PolicyOptions[], batchSize = 1): Contender {
  const { policies } = parseConfig({ policies: options }, defaultFields)
  const compiledCall = compiledCalls()

  async function toRequests({ client, units = 1, peek = false }: Question) {
    const requests: StoreRequest[] = []
    for (let index = 0; index < batchSize; index++) {
      const subject = await subjectOf(index === 0 ? client : neighbour(client, index))
      const limits = policies.map((policy) => ({ subject, terms: policy, cost: units }))
      requests.push({ mode: peek ? 'peek' : 'take', limits: limits })
    }
    return requests
  }

  return {
    by: 'Sluice',
    algorithm,
    decisions: batchSize,
    async ask(send, question) {
      const requests = await toRequests(question)
      const compiled = compiledCall(requests, question.at)
      const call = compiled
        ? { ...compiled, script: compiled.script.text }
        : { script, ...encode(requests, question.at) }
      const reply = decode(await send(call), requests)
      return reply?.states.flat().every(({ allowed }) => allowed) ?? false
    },
  }
}

/** Another address, always the same for the same client. */
const neighbour = (client: string, index: number) => client.replace(/^\d+/, String(100 + index))

export const ours: Contender[] = [
  contender('fixed window', [fixed]),
  contender('sliding window', [sliding]),
  contender('sliding log', [log]),
  contender('token bucket', [bucket]),
  contender('three limits: fixed, sliding, bucket', [fixed, sliding, bucket]),
  contender('16 requests in one call: sliding window', [sliding], 16),
]
