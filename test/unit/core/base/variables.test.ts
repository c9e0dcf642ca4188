/** The variables that a limiter reads. */
import { afterEach, expect, test } from 'vitest'
import { variablesFor } from '../../../../src/core/base/variables.ts'

const { env } = process
afterEach(() => {
  process.env = env
})

test('The variables of the process are one object, until the process has others.', () => {
  expect(variablesFor()).toBe(variablesFor())
  process.env = { ...env, REDIS_URL: 'redis://other' }
  expect(variablesFor().REDIS_URL).toBe('redis://other')
  expect(variablesFor({ SLUICE_SECRET: 'own' })).toMatchObject({ SLUICE_SECRET: 'own' })
  expect(variablesFor({ SLUICE_SECRET: 'own' }).REDIS_URL).toBe('redis://other')
})
