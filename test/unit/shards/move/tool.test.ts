/** The tool that moves keys, with other tools at the same time, earlier moves and databases that lose their data. */
import { startRedis } from 'sluice-upstash-bridge'
import { describe, expect, test } from 'vitest'
import { finishMove, moveShards, planMove } from '../../../../dev/shards/move.ts'
import { statusOf } from '../../../../dev/shards/status.ts'
import { moveKey, nameOf, receiptOf } from '../../../../src/shards/move/places.ts'
import { recordOf } from '../../../../src/store/upstash/script.ts'
import { NEW, OLD, subjectFrom, useMovingShards, type Wire } from '../../../support/moving.ts'
import { left, row, take } from '../../../support/sharded-redis.ts'

const { send, wireTo, isolate, plain, begin, redis } = useMovingShards()

const layouts = { from: OLD, to: NEW }
/** The databases of the tool. `before` runs before each of its commands. */
const databases = (before?: (name: string, command: unknown[]) => unknown, names = NEW) =>
  names.map((name) => {
    const wire = wireTo(name)
    const send: Wire = async (commands, signal) => {
      for (const command of commands) await before?.(name, command as unknown[])
      return wire(commands, signal)
    }
    return { name, send }
  })
const tool = () => ({ ...layouts, databases: databases() })
const peek = (subject: string) => [{ mode: 'peek' as const, limits: [row(subject)] }]

describe('keys of no client', () => {
  test('A record that an earlier list of shards has left does not replace the one of the client.', async () => {
    const subject = subjectFrom('eu-2', 'eu-3')
    await plain(['eu-1']).decide([take(row(subject))]) // before eu-2 was added
    for (let n = 0; n < 3; n++) await plain(OLD).decide([take(row(subject))])
    expect([...(await planMove(tool()))]).toEqual([['eu-2 > eu-3', 1]])
    expect((await statusOf(tool().databases[0]!, layouts)).left).toBe(0)
    expect((await moveShards(tool())).moved).toBe(1)
    expect(left(await plain(NEW).decide(peek(subject)))).toEqual([0])
    expect(await finishMove(tool())).toBe(1)
  })
})

describe('two tools at the same time', () => {
  test('A tool that begins second does not prepare: it removes neither receipts nor records that have arrived.', async () => {
    const subject = subjectFrom('eu-1', 'eu-3')
    await plain(OLD).decide([take(row(subject))])
    let other: Promise<unknown> | undefined
    // The other tool begins, and a request moves its key, while the first tool is about to scan the new shard.
    const slow = databases(async (name, [word]) => {
      if (name !== 'eu-3' || word !== 'SCAN' || other) return
      other = moveShards({ ...tool(), overwrite: true })
      await Promise.race([other, new Promise((resolve) => setTimeout(resolve, 1500))])
    })
    await moveShards({ ...tool(), databases: slow, overwrite: true })
    await other
    expect(left(await plain(NEW).decide(peek(subject)))).toEqual([2])
    expect(await send('eu-3', 'GET', receiptOf(recordOf(subject)))).not.toBeNull()
  })

  test('A tool that has ended while it prepared delays the next one until its lock ends.', async () => {
    await send('eu-1', 'SET', `${moveKey()}:lock`, 'the id of the other', 'PX', 1_500)
    await moveShards(tool())
    expect(await send('eu-1', 'GET', moveKey())).toBe(nameOf(layouts))
    expect(await send('eu-1', 'KEYS', '*')).toEqual([moveKey()])
  })

  test('A tool that loses its lock deletes nothing more.', async () => {
    const subject = subjectFrom('eu-1', 'eu-3')
    await plain(NEW).decide([take(row(subject))])
    const robbed = databases(async (name, [word]) => {
      if (name === 'eu-3' && word === 'SCAN') await send('eu-1', 'DEL', `${moveKey()}:lock`)
    })
    await expect(moveShards({ ...tool(), databases: robbed, overwrite: true })).rejects.toThrow(
      'eu-1: the lock on the beginning is lost. Repeat the command.',
    )
    expect(await send('eu-3', 'DBSIZE')).toBe(1)
  })
})

describe('other moves', () => {
  test('A move that has not ended is not replaced by another.', async () => {
    const subject = subjectFrom('eu-1', 'eu-3')
    await plain(OLD).decide([take(row(subject))])
    await begin()
    const other = { from: OLD, to: ['eu-2'], databases: databases() }
    await expect(moveShards(other)).rejects.toThrow(
      'The move eu-1,eu-2>eu-1,eu-2,eu-3 has begun at eu-1 and has not ended: 1 keys are left.',
    )
    expect(await send('eu-1', 'GET', moveKey())).toBe(nameOf(layouts))
    await moveShards(tool())
    const next = { from: NEW, to: ['eu-2'], databases: databases() }
    expect((await moveShards(next)).moved).toBe(1)
    expect(left(await plain(['eu-2']).decide(peek(subject)))).toEqual([2])
  })

  test('Two names of one database are refused before anything is written, whatever their URLs.', async () => {
    const subject = subjectFrom('eu-1', 'eu-3')
    await plain(OLD).decide([take(row(subject))])
    const twice = [...databases(undefined, OLD), { name: 'eu-3', send: wireTo('eu-1') }]
    await expect(moveShards({ ...tool(), databases: twice })).rejects.toThrow(
      'eu-1 and eu-3 are one database. Give each shard its own.',
    )
    expect(await send('eu-1', 'KEYS', '*')).toEqual([recordOf(subject)])
  })
})

describe('a database that loses its data', () => {
  test('The tool fails if an old shard has lost the name of the move, and succeeds when it is repeated.', async () => {
    await isolate().decide([take(row(subjectFrom('eu-1', 'eu-3')))])
    let isLost = false
    const losing = databases(async (name, [word]) => {
      if (name !== 'eu-2' || word !== 'DBSIZE' || isLost) return
      isLost = true
      await send('eu-2', 'FLUSHALL')
    })
    await expect(moveShards({ ...tool(), databases: losing })).rejects.toThrow(
      'eu-2 has lost the name of the move, and perhaps other keys.',
    )
    expect((await statusOf(tool().databases[1]!, layouts)).hasBegun).toBe(false)
    await moveShards(tool())
    expect((await statusOf(tool().databases[1]!, layouts)).hasBegun).toBe(true)
  })

  test('A new shard that is killed while keys arrive stops the tool. When it is repeated, every value arrives from its mark.', async () => {
    const subjects = Array.from({ length: 30 }, () => subjectFrom('eu-1', 'eu-3'))
    await plain(OLD).decide(subjects.map((subject) => take(row(subject))))
    const port = Number(new URL(redis[2]!.url).port)
    let isKilled = false
    const killing = databases(async (name, [word]) => {
      if (name !== 'eu-3' || word !== 'EVAL' || isKilled) return
      isKilled = true
      await redis[2]!.stop()
    })
    await expect(moveShards({ ...tool(), databases: killing })).rejects.toThrow(/^eu-3: /)
    redis[2] = await startRedis({ port })
    await expect.poll(() => send('eu-3', 'DBSIZE').catch(() => undefined)).toBe(0)
    expect((await moveShards(tool())).moved).toBe(30)
    const reply = await plain(NEW).decide(subjects.flatMap(peek))
    expect(new Set(reply.states.flat().map(({ remaining }) => remaining))).toEqual(new Set([2]))
  })
})
