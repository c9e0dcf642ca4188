/** What `npx sluice dev` watches. */
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { watchFolders } from '../../cli/dev/watch.ts'

function newFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-watch-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

function write(file: string) {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, `${Math.random()}`)
}

test('An edit just before the folders are watched anew counts.', async () => {
  const [root, app] = [newFolder(), newFolder()]
  let changes = 0
  const watching = watchFolders(root, () => changes++)
  onTestFinished(() => watching.close())
  const file = join(app, 'worker.ts')
  watching.update([file])
  write(file)
  watching.update([file])
  await expect.poll(() => changes).toBeGreaterThan(0)
})

test.each([
  ['that was replaced before', 'src/worker.ts', 'replaced'],
  ['in a folder that was created since', 'src/worker.ts', 'created'],
  ['in a folder that was removed and created again', 'src/worker.ts', 'again'],
  ['with JSX', 'src/page.tsx', 'there'],
  ['with text', 'src/page.html', 'there'],
  ['beside the configuration', 'limits.json', 'there'],
])('An edit of a file %s counts.', async (_, name, when) => {
  const root = newFolder()
  const file = join(root, name)
  if (when !== 'created') write(file)
  let changes = 0
  const watching = watchFolders(root, () => changes++)
  onTestFinished(() => watching.close())
  watching.update(when === 'created' ? [] : [file])
  if (when === 'again') rmSync(dirname(file), { recursive: true })
  if (when === 'replaced') {
    write(join(root, 'new'))
    renameSync(join(root, 'new'), file)
  } else if (when !== 'there') write(file)
  watching.update([file])
  await sleep(300)
  changes = 0
  write(file)
  await expect.poll(() => changes).toBeGreaterThan(0)
})

test('A folder of imported files that is moved away counts.', async () => {
  const root = newFolder()
  const file = join(root, 'src/worker.ts')
  write(file)
  let changes = 0
  const watching = watchFolders(root, () => changes++)
  onTestFinished(() => watching.close())
  watching.update([file])
  renameSync(dirname(file), join(root, 'before'))
  await expect.poll(() => changes, { timeout: 5_000 }).toBeGreaterThan(0)
})

test('A file that the Worker does not import counts only if it is a source, and never the module of `sluice build`.', async () => {
  const root = newFolder()
  let changes = 0
  const watching = watchFolders(root, () => changes++)
  onTestFinished(() => watching.close())
  watching.update([join(root, 'src/worker.ts'), join(root, 'sluice.built.ts')])
  for (const name of ['sluice.built.ts', 'package.json', 'page.html']) write(join(root, name))
  await sleep(300)
  expect(changes).toBe(0)
})
