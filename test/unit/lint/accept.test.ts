/** Findings that a configuration accepts. */
import { expect, test } from 'vitest'
import { lint } from '../../../src/lint/lint.ts'
import { allowing, found, one, several, shielded } from '../../support/lint.ts'

test('A policy accepts findings by their codes, and its other findings are still reported.', () => {
  const accept = ['global-key', 'cost-never-fits'] as const
  const config = one({ key: 'global', cost: 101, window: 60, accept: [...accept] })
  expect(found(config)).toEqual(['unlikely-duration policies[0].window'])
  expect(found(one({ key: 'global', accept: 'global-key' }))).toEqual([])
})

test('An entry of a list accepts its own findings.', () => {
  expect(found({ ...one({}), deny: { accept: 'list-takes-all' } })).toEqual([])
  const monitor = { header: { 'user-agent': 'monitor/*' }, accept: 'spoofable-list' } as const
  expect(found(allowing(monitor, { ip: '198.51.100.7' }))).toEqual([])
})

test('A policy does not accept the findings of another policy.', () => {
  const config = several({ key: 'cookie:a', accept: 'spoofable-key' }, { key: 'cookie:b' })
  expect(found(config)).toEqual(['spoofable-key policies[1].key[0]'])
})

test('The configuration accepts its own findings, but not those of its policies.', () => {
  expect(found({ policies: [], accept: 'no-policies' })).toEqual([])
  expect(found(one({}, { accept: 'no-policies' }))).toEqual([])
  expect(found(one({ cost: 0 }, { accept: 'never-charges' }))).toEqual([
    'never-charges policies[0].cost',
  ])
})

test('An unknown code is reported in every place, and accepts nothing.', () => {
  const accept = 'no-orgin' as never
  expect(found(one({ accept, cost: 0 }))).toEqual([
    'invalid policies[0].accept',
    'never-charges policies[0].cost',
  ])
  expect(found(allowing({ ip: '198.51.100.7', accept }))).toEqual(['invalid allow[0].accept'])
  expect(found(one({}, { accept }))).toEqual(['invalid accept'])
  expect(found(one({}, shielded(1000, { accept })))).toEqual(['invalid shield.accept'])
  const [finding] = lint(one({ accept }))
  expect(finding!.message).toMatch(/^expected one of list-takes-all, .*, got "no-orgin"$/)
  expect(finding!.hint).toBe("Did you mean 'no-origin'?")
})
