/** Learns of bans from the replies of the database, and keeps its list. */
import type { StoreError } from '../../core/base/errors.ts'
import type { Log } from '../../core/base/log.ts'
import { Recent } from '../../core/base/recent.ts'
import { isUsed } from '../../core/config/feature.ts'
import type { Config, Policy } from '../../core/config/parse.ts'
import {
  type Penalty,
  type Store,
  type StoreOptions,
  type StoreReply,
  type StoreRequest,
  storeBy,
} from '../../core/connection/store.ts'
import type { WatchedDatabase } from '../../core/decide/engine.ts'
import { NEVER } from './fields.ts'
import { editBans, type ListedBan } from './list.ts'

const hasList = ({ penalty }: Pick<Policy, 'penalty'>) =>
  penalty !== undefined && 'list' in penalty && penalty.list === true

/** True if a policy may have `penalty.list: true`. Without it no ban is listed. Durable Objects have no common list. */
export const listsBans = ({ store, ...config }: Config): boolean =>
  !store?.own && isUsed(config, hasList)

/** Tells which bans are listed. Those that only operators set are few, so the list of any policy of the deployment is enough. */
export function listedBy({ policies }: Pick<Config, 'policies'>): (penalty: Penalty) => boolean {
  const isAny = policies.some(hasList)
  return ({ after, list }) => list ?? (isAny && after === NEVER.after)
}

/** Half of the most subjects that an isolate knows to be listed. */
const MAX_KNOWN = 5_000

const isLifting = ({ mode }: StoreRequest) => mode === 'unban' || mode === 'reset'

/** Lists the bans of replies. No decision waits for it, and a failed change alters none: the next isolate that refuses lists it. */
export function withBanList(
  store: Store,
  database: WatchedDatabase,
  config: Pick<Config, 'policies' | 'namespace'>,
  log: Log,
): Store {
  const isListed = listedBy(config)
  /** The ends of the bans that this isolate has listed, by tag and subject. */
  const known = new Recent<number>(MAX_KNOWN)
  const nameOf = (tag: string, subject: string) => `${tag} ${subject}`

  function changesAfter(requests: StoreRequest[], { decidedAt, states }: StoreReply) {
    const changes = new Map<string, ListedBan[]>()
    requests.forEach((request, at) => {
      if (request.mode === 'peek') return
      request.limits.forEach(({ subject, penalty }, index) => {
        if (!penalty || !isListed(penalty)) return
        const { bannedForMs } = states[at]![index]!
        const end = bannedForMs ? decidedAt + bannedForMs : 0
        const { tag } = penalty
        const name = nameOf(tag, subject)
        const isNew = end > 0 && end !== known.get(name)
        if (!isNew && !isLifting(request)) return
        known.set(name, end)
        changes.set(tag, [...(changes.get(tag) ?? []), { subject, end }])
      })
    })
    return changes
  }

  /** Changes the list. Only operators wait for it, so that they read what they have done. */
  async function list(requests: StoreRequest[], reply: StoreReply, { waitUntil }: StoreOptions) {
    const changing = [...changesAfter(requests, reply)].map(async ([tag, bans]) => {
      const set = { tag, namespace: config.namespace }
      try {
        await editBans(database, set, 'change', bans, reply.decidedAt)
      } catch (error) {
        const { code, message } = error as StoreError
        for (const { subject } of bans) known.set(nameOf(tag, subject), 0)
        log('ban-not-listed', code, `the list of bans lacks a change: ${message}`)
      }
    })
    if (changing.length === 0) return
    const changed = Promise.all(changing)
    waitUntil?.(changed)
    if (requests.some((one) => one.mode === 'ban' || isLifting(one))) await changed
  }

  return storeBy(async (lists, options) => {
    const replies = await store.decideEach(lists, options)
    await Promise.all(
      replies.map((reply, index) =>
        'states' in reply ? list(lists[index]!, reply, options) : undefined,
      ),
    )
    return replies
  })
}
