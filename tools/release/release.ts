import { spawn, spawnSync } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { releasedChangelog } from './changelog.ts'
import { nextVersion, withVersion } from './version.ts'

export interface ReleaseOptions {
  /** The root of the repository. */
  root: string
  /** `patch`, `minor`, `major` or a version. */
  version: string
  /** Changes nothing in the repository. */
  dryRun: boolean
  /** The commands that build and test the release. They run one after the other in a clone. */
  steps: readonly (readonly [program: string, ...args: string[]])[]
  /** The date in the changelog. */
  date: string
  log(line: string): void
}

const BRANCH = 'main'
const FILES = ['CHANGELOG.md', 'package.json', 'package-lock.json']

/** The URL of the repository has one place. Who publishes writes it there. */
export const NO_REPOSITORY =
  'package.json has no "repository". Write "repository": "github:OWNER/NAME", with "homepage" and "bugs" if they are elsewhere: npm needs it for the links of README.md and for the provenance. A workflow cannot create a new name on npm: publish the first version by hand with 2FA (npm publish --access public), then name release.yml as trusted publisher in the settings of the package.'

/** The environment without the variables of `npm run`, which describe this repository and not the clone. */
const env = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) =>
      !/^(npm_(package|lifecycle)_|npm_config_(dry_run|local_prefix)$|GIT_(DIR|WORK_TREE|INDEX_FILE)$)/.test(
        name,
      ),
  ),
)

/**
 * Makes a release: a commit with the new version and its changelog, and the tag `v<version>`. Builds and tests it before, in a
 * temporary clone, so that a failure changes nothing in the repository.
 * @returns the version
 * @throws Error with one line that says what to correct
 */
export async function release(options: ReleaseOptions): Promise<string> {
  const { root, dryRun, steps, date, log } = options
  checkTree(root)
  const head = git(root, 'rev-parse', 'HEAD')
  const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  if (!manifest.repository) throw new Error(NO_REPOSITORY)
  const version = nextVersion(manifest.version, options.version)
  const tag = `v${version}`
  checkTag(root, tag)

  const clone = await mkdtemp(join(tmpdir(), 'sluice-release-'))
  try {
    git(root, 'clone', '--quiet', '--branch', BRANCH, root, clone)
    const texts = new Map<string, string>()
    for (const name of FILES) {
      const text = await readFile(join(clone, name), 'utf8')
      const isChangelog = name === 'CHANGELOG.md'
      const changed = isChangelog
        ? releasedChangelog(text, version, date)
        : withVersion(text, version)
      await writeFile(join(clone, name), changed)
      texts.set(name, changed)
    }
    log(`${tag}: builds and tests a clone, from version ${manifest.version}`)
    for (const step of steps) {
      log(`$ ${step.join(' ')}`)
      await run(step, clone)
    }
    if (dryRun) return version
    // The steps need minutes. The repository may have changed.
    checkTree(root)
    checkTag(root, tag)
    if (git(root, 'rev-parse', 'HEAD') !== head) {
      throw new Error('The repository has a new commit since the release began. Start again.')
    }
    await commit(root, texts, tag)
  } finally {
    await rm(clone, { recursive: true, force: true })
  }
  return version
}

function checkTree(root: string): void {
  const branch = git(root, 'branch', '--show-current')
  if (branch !== BRANCH) {
    const current = branch === '' ? 'No branch is checked out' : `The branch is ${branch}`
    throw new Error(`${current}. Releases are made on ${BRANCH}: git switch ${BRANCH}`)
  }
  const changes = git(root, 'status', '--porcelain').split('\n').filter(Boolean)
  if (changes.length > 0) {
    const more = changes.length > 1 ? ` and ${changes.length - 1} more` : ''
    throw new Error(
      `The working tree has changes: ${changes[0]!.trim().replace(/^\S+ +/, '')}${more}. Commit or stash them.`,
    )
  }
}

function checkTag(root: string, tag: string): void {
  if (git(root, 'tag', '--list', tag) !== '') {
    throw new Error(`The tag ${tag} exists. Choose a newer version.`)
  }
}

/** Commits the files and sets the tag. Restores the files if git refuses the commit. */
async function commit(root: string, texts: ReadonlyMap<string, string>, tag: string) {
  const paths = [...texts.keys()]
  try {
    for (const [name, text] of texts) await writeFile(join(root, name), text)
    git(root, 'commit', '--quiet', '--message', `release: ${tag}`, '--', ...paths)
  } catch (error) {
    git(root, 'restore', '--staged', '--worktree', '--', ...paths)
    throw error
  }
  git(root, 'tag', '--annotate', '--message', tag, tag)
}

/** Runs git. Returns its output without the last line break. */
function git(root: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync('git', args, { cwd: root, env, encoding: 'utf8' })
  if (status === 0) return stdout.trimEnd()
  throw new Error(`git ${args[0]} failed: ${(stderr ?? '').trim().split('\n').at(-1)}`)
}

/** Runs a command and shows its output. Ctrl-C stops it. */
async function run([program, ...args]: ReleaseOptions['steps'][number], cwd: string) {
  const child = spawn(program, args, { cwd, env, stdio: 'inherit' })
  const signals = ['SIGINT', 'SIGTERM'] as const
  // The terminal sends SIGINT to the child too. This process lives on, to remove the clone.
  const stop = (signal: NodeJS.Signals) => void child.kill(signal)
  for (const signal of signals) process.on(signal, stop)
  try {
    const code = await new Promise<number>((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (status, signal) => resolve(status ?? 128 + constants.signals[signal!]))
    })
    if (code !== 0) {
      throw new Error(
        `${[program, ...args].join(' ')} failed (exit code ${code}). Nothing changed.`,
      )
    }
  } finally {
    for (const signal of signals) process.off(signal, stop)
  }
}
