import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

test('One allowed request of the middleware enters at most 40 files, 106 functions and 120 calls.', async () => {
  const args = ['--import', './dev/node-version.mjs', 'test/support/walk.ts']
  const { stdout } = await promisify(execFile)(process.execPath, args)
  const { body, files, functions, calls, names } = JSON.parse(stdout)
  expect(body).toBe('passed')
  expect(names).toContain('core/pipeline.ts checkRequest')
  expect(files, names.join('\n')).toBeLessThanOrEqual(40)
  expect(functions, names.join('\n')).toBeLessThanOrEqual(106)
  expect(calls, names.join('\n')).toBeLessThanOrEqual(120)
})
