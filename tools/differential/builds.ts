/** Built packages of commits, and of this folder as it is. */
import { execFileSync } from 'node:child_process'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
/** In node_modules, so that the built files find the packages that they import. */
const cache = join(root, 'node_modules/.cache/differential')

const run = (command: string, args: string[], options: object = {}) =>
  execFileSync(command, args, { cwd: root, maxBuffer: 2 ** 30, ...options })
const git = (args: string[], options: object = {}) =>
  run('git', args, { encoding: 'utf8', ...options })
    .toString()
    .trim()

/** The files of this folder, also those that no commit has, as a tree of Git. */
function treeOfFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-index-'))
  const env = { ...process.env, GIT_INDEX_FILE: join(folder, 'index') }
  try {
    git(['read-tree', 'HEAD'], { env })
    git(['add', '--all'], { env })
    return git(['write-tree'], { env })
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Builds a tree of files, unless the cache has it. Returns the folder with its `package.json` and `dist`. */
function built(tree: string): string {
  const folder = join(cache, tree)
  if (existsSync(folder)) return folder
  console.log(`Builds ${tree.slice(0, 8)}.`)
  mkdirSync(cache, { recursive: true })
  const work = mkdtempSync(join(tmpdir(), 'sluice-build-'))
  const done = mkdtempSync(join(cache, 'new-'))
  const modules = join(work, 'node_modules')
  try {
    run('tar', ['-x', '-C', work], { input: run('git', ['archive', '--format=tar', tree]) })
    const locks = [root, work].map((at) => readFileSync(join(at, 'package-lock.json'), 'utf8'))
    if (locks[0] === locks[1]) symlinkSync(join(root, 'node_modules'), modules)
    else run('npm', ['ci', '--no-audit', '--no-fund'], { cwd: work })
    run('npm', ['run', 'build'], { cwd: work })
    const kept = ['package.json', 'dist']
    if (!lstatSync(modules).isSymbolicLink()) kept.push('node_modules')
    for (const name of kept) run('mv', [join(work, name), join(done, name)])
    // Another process may have built the same tree in the meantime.
    if (!existsSync(folder)) renameSync(done, folder)
  } finally {
    for (const one of [work, done]) rmSync(one, { recursive: true, force: true })
  }
  return folder
}

/** @param ref a commit, or a folder with a built package */
export const builtFolderOf = (ref: string): string =>
  existsSync(join(ref, 'dist')) ? ref : built(git(['rev-parse', '--verify', `${ref}^{tree}`]))

export const builtWorkingTree = (): string => built(treeOfFolder())
