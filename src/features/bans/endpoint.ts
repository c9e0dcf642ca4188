/** `GET /_sluice/v1/policies/{name}/bans`: the keys of a policy that are banned now. */
import { policyIn } from '../../api/call.ts'
import { noList, unprocessable } from '../../api/problems.ts'
import { StoreError, show } from '../../core/base/errors.ts'
import type { Policy } from '../../core/config/parse.ts'
import { databaseIn } from '../../core/decide/database.ts'
import { limitsOf } from '../../core/decide/limit.ts'
import type { Call, Endpoint } from '../../core/endpoint.ts'
import { matchOf } from '../../core/program/explicit-key.ts'
import type { Match } from '../../core/program/match.ts'
import { jsonAnswer } from '../../core/respond/response.ts'
import { editBans, type ListedBan, readBans } from './list.ts'
import { listedBy } from './watch.ts'

const PAGE = 100
const DEADLINE_MS = 5_000

/** A key that is banned. */
export interface BanReport {
  /** The client: its name in Redis. */
  subject: string
  /** The rest of the ban, ms. */
  bannedForMs: number
}

/** The answer of `GET /policies/{name}/bans`. */
export interface BanPage {
  /** At most 100, the ban that ends last first. */
  bans: BanReport[]
  /** The number of bans of the policy, on all pages. */
  total: number
  /** The parameter `after` of the next page. Absent on the last one. */
  next?: string
}

async function listBans(call: Call): Promise<Response> {
  const { request, config, parts, runtime } = call
  const policy = policyIn(call)
  const { penalty } = policy
  if (!penalty || !listedBy(config)(penalty)) return noList(policy)
  const after = new URL(request.url).searchParams.get('after')
  const cursor = after === null ? FIRST : cursorOf(after)
  if (!cursor) {
    const expected = '`next` of the answer before'
    return unprocessable([{ path: 'after', expected, got: show(after) }])
  }
  const database = { ...databaseIn(config, runtime.env), observer: parts.observer }
  const set = { tag: penalty.tag, namespace: config.namespace }
  const now = config.clock === 'edge' ? Date.now() : undefined
  // One more than a page tells whether there is a next one.
  const found = await readBans(database, set, cursor.end, PAGE + 1, now)
  const later = found.bans.filter((ban) => byEnd(cursor, ban) < 0)
  const page = later.slice(0, PAGE)
  const { decidedAt, rests } = await restsOf(page, policy, call)
  const ended = page.filter((_, index) => !rests[index])
  // If this fails, the next reader removes them.
  if (ended[0]) {
    const forgetting = editBans(database, set, 'forget', ended, decidedAt)
    runtime.waitUntil(forgetting.catch(() => {}))
  }
  const last = later.length > PAGE && page.at(-1)
  const bans = page.flatMap(({ subject }, index) => {
    const bannedForMs = rests[index]
    return bannedForMs ? { subject, bannedForMs } : []
  })
  const body: BanPage = {
    bans,
    total: found.size - ended.length,
    ...(last && { next: `${last.end}:${last.subject}` }),
  }
  return jsonAnswer(body)
}

export const bansEndpoint: Endpoint = {
  path: /^\/policies\/([^/]+)\/bans$/,
  methods: ['GET'],
  scopes: ['operate'],
  answer: listBans,
}

const FIRST: ListedBan = { end: Number.POSITIVE_INFINITY, subject: '' }

function cursorOf(text: string): ListedBan | undefined {
  const [, end, subject] = /^(\d{1,16}):(.+)$/s.exec(text) ?? []
  return end === undefined ? undefined : { end: Number(end), subject: subject! }
}

/** The order of Redis: the latest end first, and of equal ends the last subject. */
const byEnd = (one: ListedBan, other: ListedBan): number =>
  other.end - one.end || (one.subject < other.subject ? 1 : one.subject > other.subject ? -1 : 0)

/** The rest of each ban by its record, which alone decides: 0 for a ban that was lifted. */
async function restsOf(bans: readonly ListedBan[], policy: Policy, { parts, runtime }: Call) {
  const rests: number[] = []
  let decidedAt = 0
  if (bans.length === 0) return { decidedAt, rests }
  const matches = bans.map(({ subject }) => matchOf(policy, subject) as Match)
  const limits = await limitsOf(matches, undefined, parts)
  const replies = await parts.store.decideEach(
    limits.map((limit) => [{ mode: 'peek', limits: [limit] }]),
    { deadlineMs: DEADLINE_MS, waitUntil: runtime.waitUntil },
  )
  for (const reply of replies) {
    if (reply instanceof StoreError) throw reply
    decidedAt = reply.decidedAt
    rests.push(reply.states[0]![0]!.bannedForMs ?? 0)
  }
  return { decidedAt, rests }
}
