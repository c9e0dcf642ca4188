/** The requests of one isolate that wait, in the order in which they came. */
import { withResolvers } from '../../core/base/with-resolvers.ts'
import type { Outcome } from '../../core/decide/question.ts'
import { atTime, type LineMember, Lines, SILENT_MS } from './lines.ts'

/** A request that has ended without notice is known to have gone so long after it could have waited, ms. */
const GONE_MS = 1_000
/** A request that may pass waits so long for the answers of those before it, ms. */
const HOLD_MS = 300

export interface GuestAnswer {
  outcome: Outcome
  /** The id of the ticket with which it asked. */
  ticket: string
  /** The time of the turn, ms since the epoch. */
  until: number
}

export interface Arrival {
  /** The longest time for which it may wait, ms. */
  mostMs: number
  subjects: readonly string[]
  /** Requests with equal questions may exchange their answers. `undefined` if no other one may have its answer. */
  question: () => string | undefined
}

export type WaitingRoom = ReturnType<typeof createRoom>

const NONE: GuestAnswer = {
  outcome: { decision: { allowed: false, reason: 'limited', retryAfterMs: null, limits: [] } },
  ticket: '',
  until: 0,
}

interface WaitingGuest extends LineMember, Pick<Arrival, 'question'> {
  answer: GuestAnswer
  /** The end of its wait, ms since the epoch. */
  endsAt: number
  /** It asks or passes; it has a refusal, and waits until it should ask again; or it has an admission, and waits for those before it. */
  state: 'busy' | 'asleep' | 'holds'
  isCalled: boolean
  resume: () => void
}

/** @param most the most requests that may wait at a time */
export function createRoom(most: number) {
  const guests = new Set<{ endsAt: number }>()
  const lines = new Lines<WaitingGuest>()
  let number = 0

  function isFull(now: number): boolean {
    if (guests.size < most) return false
    for (const one of guests) if (one.endsAt + GONE_MS < now) guests.delete(one)
    return guests.size >= most
  }

  const linesOf = ({ names }: LineMember) => names.flatMap((name) => lines.of(name))

  /** Lets a request that sleeps go on in its own code. */
  function resume(waiter: WaitingGuest) {
    waiter.goneAt = Math.min(waiter.goneAt, Date.now() + SILENT_MS)
    waiter.resume()
  }

  function call(waiter: WaitingGuest) {
    waiter.isCalled = true
    resume(waiter)
  }

  /** Calls all whose turn it is, in the order in which they came. */
  function callDue(waiter: WaitingGuest) {
    const now = Date.now()
    for (const one of linesOf(waiter))
      if (one.state === 'asleep' && one.answer.until <= now) call(one)
  }

  /** The first one that came before a request and has not passed, if the request has to wait for it. */
  const firstBefore = (waiter: WaitingGuest): WaitingGuest | undefined =>
    linesOf(waiter).find(
      (one) => one.number < waiter.number && (one.state !== 'asleep' || mayExchange(one, waiter)),
    )

  /** Exchanges the answer for that of the first later request with an earlier admission. */
  function exchange(waiter: WaitingGuest) {
    const later = linesOf(waiter).find(
      (one) => one.number > waiter.number && one.state === 'holds' && mayExchange(waiter, one),
    )
    if (!later || admittedAt(waiter) <= admittedAt(later)) return
    const { answer } = waiter
    waiter.answer = later.answer
    later.answer = answer
    later.state = 'asleep'
    later.resume()
  }

  /** Lets those with an admission look again who comes before them. */
  function move(waiter: WaitingGuest) {
    for (const one of linesOf(waiter)) if (one.state === 'holds') one.resume()
  }

  /** Waits until another request resumes this one, or until a time. */
  async function pause(waiter: WaitingGuest, until: number, onTime = () => {}) {
    // workerd continues in the request that made the promise.
    const { promise, resolve } = withResolvers<void>()
    const timer = atTime(waiter, until, () => {
      onTime()
      resolve()
    })
    waiter.resume = resolve
    await promise
    timer.cancel()
  }

  async function wait(waiter: WaitingGuest, closed: Promise<unknown> | undefined) {
    let isGone = false
    const end = () => {
      isGone = true
      waiter.resume()
    }
    closed?.then(end, end)
    let holdsUntil = 0
    for (;;) {
      const now = Date.now()
      waiter.goneAt = now + SILENT_MS
      lines.join(waiter)
      if (!isGone) exchange(waiter)
      if (isAdmitted(waiter)) {
        waiter.state = 'holds'
        holdsUntil ||= now + HOLD_MS
        const first = firstBefore(waiter)
        if (!first || now >= holdsUntil) break
        if (first.state === 'asleep') resume(first)
        await pause(waiter, Math.min(first.goneAt, holdsUntil))
      } else if (isGone || waiter.isCalled || waiter.answer.until <= now) {
        break
      } else {
        holdsUntil = 0
        waiter.state = 'asleep'
        move(waiter)
        await pause(waiter, waiter.answer.until, () => callDue(waiter))
      }
    }
    Object.assign(waiter, { state: 'busy', isCalled: false, goneAt: Date.now() + HOLD_MS })
    return !isGone
  }

  return {
    get size() {
      return guests.size
    },
    /** A request is in the room from its first call of the store on. */
    enter({ mostMs, subjects, question }: Arrival) {
      const now = Date.now()
      const waiter: WaitingGuest = {
        number: ++number,
        names: subjects,
        question,
        endsAt: now + mostMs,
        goneAt: now,
        answer: NONE,
        state: 'busy',
        isCalled: false,
        resume: () => {},
      }
      const isTooMuch = isFull(now)
      if (!isTooMuch) guests.add(waiter)
      return {
        isFull: isTooMuch,
        /** Its last answer, or that of another request, with which it was exchanged. */
        get answer() {
          return waiter.answer
        },
        isBehind: () => firstBefore(waiter) !== undefined,
        /**
         * After a refusal, waits until it should ask again; after an admission, until those before it have their answers: an earlier request that
         * sleeps gets the admission for its refusal. Returns false if the client has gone, which settles `closed`.
         */
        wait(answer: GuestAnswer, closed: Promise<unknown> | undefined) {
          waiter.answer = answer
          return wait(waiter, closed)
        },
        leave() {
          guests.delete(waiter)
          lines.leave(waiter)
          move(waiter)
        },
      }
    },
    /** Lets the first request of each subject ask: units have come back. */
    wake(subjects: Iterable<string>) {
      for (const subject of subjects) {
        const first = lines.of(subject).find(({ state }) => state === 'asleep')
        if (first) call(first)
      }
    },
  }
}

const isAdmitted = ({ answer }: WaitingGuest) => answer.outcome.decision.allowed

/** The time of its charge by the clock of the store, ms since the epoch. */
const admittedAt = ({ answer: { outcome } }: WaitingGuest) =>
  outcome.decision.allowed ? (outcome.decision.decidedAt ?? 0) : Number.POSITIVE_INFINITY

/** True if each of two requests may have the answer of the other, which leaves the later one time to wait. */
function mayExchange(earlier: WaitingGuest, later: WaitingGuest): boolean {
  if (!isAdmitted(earlier) && earlier.answer.until > later.endsAt) return false
  const question = earlier.question()
  return question !== undefined && question === later.question()
}
