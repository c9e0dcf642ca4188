/** The line of one request, as a reader follows it: how often it changes the room. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { roomOf } from '../../dev/imports.ts'
import type { Step } from '../support/walk.ts'

/** Rooms of values and helpers, which each room may call. */
const HELPERS = ['core/base']

test('One allowed request of the middleware changes the room at most 13 times.', async () => {
  const args = ['--import', './dev/node-version.mjs', 'test/support/walk.ts']
  const { stdout } = await promisify(execFile)(process.execPath, args)
  const { body, steps } = JSON.parse(stdout) as { body: string; steps: Step[] }
  expect(body).toBe('passed')
  const rooms = steps.map(({ file }) => roomOf(file)).filter((room) => !HELPERS.includes(room))
  const visits = rooms.filter((room, index) => room !== rooms[index - 1])
  expect(visits).toContain('core/connection')
  expect(visits.length - 1, visits.join(' > ')).toBeLessThanOrEqual(13)
  const files = new Set(steps.map(({ file }) => file)).size
  console.info(`${visits.join(' > ')}: ${files} files, ${steps.length} calls`)
})
