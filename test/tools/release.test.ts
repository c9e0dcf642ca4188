import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { releasedChangelog } from '../../tools/release/changelog.ts'
import { NO_REPOSITORY, type ReleaseOptions, release } from '../../tools/release/release.ts'
import { nextVersion, withVersion } from '../../tools/release/version.ts'
import { root, run } from '../support/dev-command.ts'

const CHANGELOG = `# Changelog

## Unreleased

### Added

- A field.

## 1.2.3 - 2026-01-01

- The first release.
`
const RELEASED = CHANGELOG.replace('## Unreleased', '## Unreleased\n\n## 1.3.0 - 2026-11-25')
const json = (value: unknown) => `${JSON.stringify(value, null, 2)}\n`
const PACKAGE = json({
  name: 'shop',
  version: '1.2.3',
  repository: 'github:owner/shop',
  dependencies: { tool: '1.2.3' },
})
const LOCK = json({
  name: 'shop',
  version: '1.2.3',
  packages: {
    '': { name: 'shop', version: '1.2.3' },
    'node_modules/tool': { version: '1.2.3' },
  },
})

let folder: string
let outside: string
const git = (...args: string[]) =>
  execFileSync('git', args, { cwd: folder, encoding: 'utf8', stdio: 'pipe' }).trim()
const write = (name: string, text: string) => writeFileSync(join(folder, name), text)
const read = (name: string) => readFileSync(join(folder, name), 'utf8')
/** Every ref and every file of the repository, to compare. */
const state = () => [
  git('for-each-ref'),
  git('status', '--porcelain'),
  git('worktree', 'list'),
  ...['CHANGELOG.md', 'package.json', 'package-lock.json'].map(read),
]

let template: string
beforeAll(() => {
  folder = template = mkdtempSync(join(tmpdir(), 'sluice-release-template-'))
  git('init', '--quiet', '--initial-branch', 'main')
  git('config', 'user.name', 'Test')
  git('config', 'user.email', 'test@example.com')
  git('config', 'commit.gpgsign', 'false')
  git('config', 'tag.gpgsign', 'false')
  write('CHANGELOG.md', CHANGELOG)
  write('package.json', PACKAGE)
  write('package-lock.json', LOCK)
  git('add', '.')
  git('commit', '--quiet', '--message', 'first')
})
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-release-test-'))
  outside = mkdtempSync(join(tmpdir(), 'sluice-release-out-'))
  cpSync(template, folder, { recursive: true })
})
const remove = (...folders: string[]) => {
  for (const one of folders) rmSync(one, { recursive: true, force: true })
}
afterEach(() => remove(folder, outside))
afterAll(() => remove(template))

/** A step that runs JavaScript. */
const step = (code: string) => [process.execPath, '--eval', code] as const
/** Writes the folder of the step and the files in it to a file outside. */
const look = () =>
  step(`const { readFileSync: read, writeFileSync } = require('node:fs')
    const files = ['package.json', 'package-lock.json', 'CHANGELOG.md'].map((file) => read(file, 'utf8'))
    writeFileSync(${JSON.stringify(join(outside, 'seen.json'))}, JSON.stringify({ folder: process.cwd(), files }))`)
const seen = () => JSON.parse(readFileSync(join(outside, 'seen.json'), 'utf8'))

function start(version: string, options: Partial<ReleaseOptions> = {}) {
  const defaults = { root: folder, dryRun: false, steps: [look()], date: '2026-11-25', log() {} }
  return release({ ...defaults, version, ...options })
}

describe('A release', () => {
  test('A release commits the version, the lock file and the changelog, and sets a tag.', async () => {
    expect(await start('minor')).toBe('1.3.0')
    expect(read('package.json')).toBe(PACKAGE.replace('"1.2.3"', '"1.3.0"'))
    expect(JSON.parse(read('package-lock.json'))).toEqual({
      name: 'shop',
      version: '1.3.0',
      packages: {
        '': { name: 'shop', version: '1.3.0' },
        'node_modules/tool': { version: '1.2.3' },
      },
    })
    expect(read('CHANGELOG.md')).toBe(RELEASED)
    expect(git('status', '--porcelain')).toBe('')
    expect(git('log', '--format=%s')).toBe('release: v1.3.0\nfirst')
    expect(git('rev-parse', 'v1.3.0^{commit}')).toBe(git('rev-parse', 'main'))
  })

  test('The steps run in order in a clone that has the new version, and the clone is removed.', async () => {
    const steps = [step(`require('node:fs').writeFileSync('package.json', 'step 1')`), look()]
    await start('minor', { steps })
    expect(seen().files).toEqual(['step 1', withVersion(LOCK, '1.3.0'), RELEASED])
    expect(seen().folder).not.toBe(folder)
    expect(existsSync(seen().folder)).toBe(false)
    // Only the version is committed, and not what a step writes.
    expect(read('package.json')).toBe(withVersion(PACKAGE, '1.3.0'))
  })

  test('A dry run runs the steps and changes nothing.', async () => {
    const before = state()
    expect(await start('minor', { dryRun: true })).toBe('1.3.0')
    expect(seen().files).toEqual([
      withVersion(PACKAGE, '1.3.0'),
      withVersion(LOCK, '1.3.0'),
      RELEASED,
    ])
    expect(existsSync(seen().folder)).toBe(false)
    expect(state()).toEqual(before)
  })

  test('A second release needs new entries in the changelog.', async () => {
    await start('minor')
    await expect(start('minor')).rejects.toThrow('CHANGELOG.md has no entries')
  })

  test('The first release can have the version that package.json has.', async () => {
    write('CHANGELOG.md', '# Changelog\n\n## Unreleased\n\n- All.\n')
    git('commit', '--quiet', '--all', '--message', 'changelog')
    expect(await start('1.2.3')).toBe('1.2.3')
    expect(git('tag')).toBe('v1.2.3')
  })
})

describe('Nothing changes', () => {
  /** Expects an error of one line, no step, and an unchanged repository. */
  async function refused(version: string, message: string, options?: Partial<ReleaseOptions>) {
    const before = state()
    const error: Error = await start(version, options).then(
      () => expect.unreachable('The release succeeds.'),
      (reason) => reason,
    )
    expect(error.message).toBe(message)
    expect(state()).toEqual(before)
  }
  const changes = (files: string) => `The working tree has changes: ${files}. Commit or stash them.`
  test.each<[string, () => unknown, string, string, Partial<ReleaseOptions>?]>([
    ['A new file', () => write('new.txt', ''), 'patch', changes('new.txt')],
    [
      'A changed file and a new one',
      () => [write('new.txt', ''), write('package.json', PACKAGE.replace('shop', 'store'))],
      'patch',
      changes('package.json and 1 more'),
      { dryRun: true },
    ],
    [
      'Another branch than main',
      () => git('switch', '--quiet', '--create', 'topic'),
      'patch',
      'The branch is topic. Releases are made on main: git switch main',
    ],
    [
      'No branch',
      () => git('switch', '--quiet', '--detach'),
      'patch',
      'No branch is checked out. Releases are made on main: git switch main',
    ],
    [
      'An older version',
      () => {},
      '1.1.9',
      'The version 1.1.9 is older than 1.2.3, the version in package.json.',
    ],
    [
      'A tag that exists',
      () => git('tag', 'v1.2.4'),
      'patch',
      'The tag v1.2.4 exists. Choose a newer version.',
    ],
    [
      'A package.json without the repository',
      () => {
        write('package.json', PACKAGE.replace('  "repository": "github:owner/shop",\n', ''))
        git('commit', '--quiet', '--all', '--message', 'manifest')
      },
      'patch',
      NO_REPOSITORY,
      { dryRun: true },
    ],
    [
      'A changelog with headings and without entries',
      () => {
        write('CHANGELOG.md', CHANGELOG.replace('- A field.\n', ''))
        git('commit', '--quiet', '--all', '--message', 'changelog')
      },
      'patch',
      'CHANGELOG.md has no entries under "## Unreleased". Describe what changed, and commit it.',
    ],
  ])(
    '%s stops the release before its first step.',
    async (_, prepare, version, message, options) => {
      prepare()
      await refused(version, message, options)
      expect(existsSync(join(outside, 'seen.json'))).toBe(false)
    },
  )

  test('An unknown version stops the release.', async () => {
    for (const version of ['patsh', '1.3', 'v1.3.0', '1.3.0-rc.1', '01.3.0', '']) {
      await refused(
        version,
        `Unknown version ${JSON.stringify(version)}. Write patch, minor, major, or a version such as 1.2.3.`,
      )
    }
  })

  test('A step that fails stops the release, and the next steps do not run.', async () => {
    const steps = [[process.execPath, '-e', 'process.exit(3)'] as const, look()]
    const command = `${process.execPath} -e process.exit(3)`
    await refused('patch', `${command} failed (exit code 3). Nothing changed.`, { steps })
    expect(existsSync(join(outside, 'seen.json'))).toBe(false)
  })

  test('A commit that someone makes during the steps stops the release.', async () => {
    const commit = `require('node:child_process').execFileSync('git', ['commit', '--quiet', '--allow-empty', '--message', 'other'], { cwd: ${JSON.stringify(folder)} })`
    await expect(start('patch', { steps: [step(commit)] })).rejects.toThrow(
      'The repository has a new commit since the release began. Start again.',
    )
    expect(git('tag')).toBe('')
    expect(git('log', '--format=%s')).toBe('other\nfirst')
  })

  test('A commit that a hook refuses leaves the files as they were.', async () => {
    const hook = join(folder, '.git/hooks/pre-commit')
    writeFileSync(hook, '#!/bin/sh\necho "no commits today" >&2\nexit 1\n', { mode: 0o755 })
    await refused('patch', 'git commit failed: no commits today')
  })
})

test.each([
  ['0.1.9', 'patch', '0.1.10'],
  ['0.1.9', 'minor', '0.2.0'],
  ['0.1.9', 'major', '1.0.0'],
  ['0.9.0', '0.10.0', '0.10.0'],
  ['1.0.9', '1.1.0', '1.1.0'],
])('After %s, %s is %s.', (current, wanted, expected) => {
  expect(nextVersion(current, wanted)).toBe(expected)
})

test('Entries of earlier releases are not entries of this one.', () => {
  const text = '## Unreleased\n\n## 1.0.0\n\n- Old.\n'
  expect(() => releasedChangelog(text, '1.1.0', '2026-11-25')).toThrow('no entries')
  expect(() => releasedChangelog('# Changelog\n', '1.1.0', '2026-11-25')).toThrow('no heading')
})

test('package.json and the lock file of this repository change only in their version.', () => {
  for (const file of ['package.json', 'package-lock.json']) {
    const text = readFileSync(root + file, 'utf8')
    const { version } = JSON.parse(text)
    expect(withVersion(text, version)).toBe(text)
    const changed = withVersion(text, '77.0.0').split('\n')
    const lines = text.split('\n').filter((line, at) => line !== changed[at])
    expect(lines.map((line) => line.trim())).toEqual(
      file === 'package.json'
        ? [`"version": "${version}",`]
        : [`"version": "${version}",`, `"version": "${version}",`],
    )
  }
})

test('The command reports a mistake and exits with 1.', async () => {
  const { code, stderr } = await run(process.execPath, ['tools/release.ts', 'minor', '--fast'])
  expect(code).toBe(1)
  expect(stderr).toContain("Unknown option '--fast'")
  expect((await run(process.execPath, ['tools/release.ts'])).stderr).toMatch(/^Write one version/)
})
