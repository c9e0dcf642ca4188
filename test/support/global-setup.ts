import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { glob, mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import chromium from '@sparticuz/chromium'
import { startRedis } from 'sluice-upstash-bridge'
import { buildStack } from '../../tools/stack.ts'
import { buildPackage, packageFolder } from './sluice-package.ts'

/** What the built Workers depend on. */
const WORKER_SOURCES = [
  'src/**/*.ts',
  'src/**/*.json',
  'cli/{build,project}/*.ts',
  'tools/*.ts',
  'sluice.config.ts',
  'tsconfig.json',
  'wrangler.toml',
  'package-lock.json',
]

/** What the built package depends on. */
const PACKAGE_SOURCES = [
  'src/**/*.{ts,json}',
  'cli/**/*.{ts,html,css}',
  'packages/upstash-bridge/src/**/*',
  'package-lock.json',
  'test/support/sluice-package.ts',
]

async function hashOf(sources: string[]): Promise<string> {
  const hash = createHash('sha256')
  const files: string[] = []
  for await (const file of glob(sources)) files.push(file)
  for (const file of files.sort()) {
    if ((await stat(file)).isFile()) hash.update(`${file}\n`).update(await readFile(file))
  }
  return hash.digest('hex')
}

/** Builds something if its sources have changed. wrangler takes longer than most test files. */
async function buildChanged(sources: string[], folder: string, build: () => Promise<void>) {
  const stamp = join(folder, 'sources')
  const hash = await hashOf(sources)
  if (existsSync(stamp) && (await readFile(stamp, 'utf8')) === hash) return
  await build()
  await mkdir(folder, { recursive: true })
  await writeFile(stamp, hash)
}

/**
 * Runs once before all test files: downloads Redis if it is not installed, unpacks Chromium, and builds the Workers and the package.
 * Two workers that unpack Chromium at the same time would start a file that is not complete.
 */
export default async function setup() {
  const redis = await startRedis({ log: console.log })
  await Promise.all([
    redis.stop(),
    process.env.CHROME_BIN || chromium.executablePath(),
    buildChanged(WORKER_SOURCES, '.cache/workers', buildStack),
    buildChanged(PACKAGE_SOURCES, packageFolder, buildPackage),
  ])
}
