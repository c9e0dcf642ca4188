import { isDeepStrictEqual } from 'node:util'
import { expect } from 'vitest'
import type { KeptState, Slots } from '../../src/stores/durable-objects/record.ts'
import { type ModelKey, spell } from '../model/model.ts'
import { entriesOf } from '../model/values.ts'
import type { Objects } from './objects.ts'
import type { Server } from './server.ts'

/** `expect(actual, message).toEqual(expected)`, called only if the values differ, because it is slow. */
export function expectEqual<T>(actual: T, expected: unknown, message: string): void {
  if (!isDeepStrictEqual(actual, expected)) expect(actual, message).toEqual(expected)
}

interface Stored {
  /** The states, sorted: as the record spells them, a log as its tag and scores, a slot with its end. */
  states: string[]
  /** The time at which the key expires, in ms since the epoch by Redis' clock. */
  expires: number
}

const isLog = (key: string) => key.includes('}:log:')
const isSlots = (key: string) => key.includes('}:slots:')
const isValues = (key: string) => key.includes('}:values:')

export async function read(server: Server, key: string): Promise<Stored> {
  if (server.objects) return readObject(server.objects, key)
  const [content, expires] = await Promise.all([
    isLog(key) || isSlots(key) || isValues(key)
      ? server.send('ZRANGE', key, '0', '-1', 'WITHSCORES')
      : server.send('GET', key),
    server.send('PEXPIRETIME', key),
  ])
  return {
    // RESP3 returns pairs of member and score, and RESP2 returns one flat list.
    states: Array.isArray(content) ? statesOfSet(key, content.flat()) : statesOfRecord(content),
    expires: Number(expires),
  }
}

/** The row of an object that has what Redis has under a key. */
async function readObject({ call }: Objects, key: string): Promise<Stored> {
  const [, subject, name] = /\{(.*)\}:?(.*)$/.exec(key)!
  const rows = new Map(await call<[string, { value: never; expires: number }][]>('/dump', subject!))
  // Values are stored as slots.
  const row = rows.get(name?.replace('values:', 'slots:') || 'record')
  if (!row) return { states: [], expires: -2 }
  return { states: spelled(key, row.value).sort(), expires: row.expires }
}

function spelled(key: string, value: unknown): string[] {
  if (isSlots(key)) {
    return (value as Slots[]).flatMap(({ id, end, count }) =>
      Array.from({ length: count }, (_, n) => `${id}:${n + 1} until ${end}`),
    )
  }
  if (isValues(key)) return (value as Slots[]).map(({ id, end }) => `${id} at ${end}`)
  if (isLog(key)) return [`${key.slice(key.indexOf(':log:') + ':log:'.length)} ${value}`]
  return (value as [string, KeptState][]).map(([tag, { time, end, numbers }]) =>
    [tag, time, end - time, ...numbers].join(':'),
  )
}

function statesOfRecord(content: unknown): string[] {
  if (content === null) return []
  const [version, ...states] = String(content).split(';')
  const last = states.pop()
  if (version !== '1' || last !== '' || states.length === 0) {
    expect.fail(`Expected "1;" and states that each end with ";", got ${content}.`)
  }
  return states.sort()
}

function statesOfSet(key: string, membersAndScores: unknown[]): string[] {
  if (isValues(key)) {
    return membersAndScores
      .flatMap((one, i) => (i % 2 ? [] : `${one} at ${membersAndScores[i + 1]}`))
      .sort()
  }
  if (isSlots(key)) {
    const slots = membersAndScores.map(String)
    return slots.flatMap((one, i) => (i % 2 ? [] : `${one} until ${slots[i + 1]}`)).sort()
  }
  if (membersAndScores.length === 0) return []
  const tag = key.slice(key.indexOf(':log:') + ':log:'.length)
  return [`${tag} ${membersAndScores.filter((_, index) => index % 2 === 1)}`]
}

/** The states that the oracle expects `read` to return. */
export function predictStates(key: string, predicted: ModelKey | undefined): string[] {
  return [...(predicted?.states ?? [])]
    .flatMap(([tag, state]) => {
      if (isLog(key)) return [`${tag} ${state.numbers}`]
      if (isValues(key)) return entriesOf(state)
      if (!isSlots(key)) return [spell(tag, state)]
      return state.members!.map((member, index) => `${member} until ${state.numbers[index]}`)
    })
    .sort()
}

/** Every byte and every expiry of the keys, to compare before and after. */
export async function snapshot(server: Server, keys: string[]): Promise<unknown[]> {
  if (server.objects) return Promise.all(keys.map((key) => readObject(server.objects!, key)))
  const parts = keys.flatMap((key) => [server.send('DUMP', key), server.send('PEXPIRETIME', key)])
  return Promise.all(parts)
}

/** The time of the server's clock in ms since the epoch. */
export async function clock(server: Server): Promise<number> {
  if (server.objects) return server.objects.clock()
  const [seconds, micros] = (await server.send('TIME')) as [string, string]
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000)
}
