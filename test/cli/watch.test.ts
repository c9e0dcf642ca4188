/** What `npx sluice dev` watches. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { watchFolders } from '../../cli/dev/watch.ts'

test('An edit just before the folders are watched anew counts.', async () => {
  const root = mkdtempSync(join(tmpdir(), 'sluice-watch-'))
  const app = mkdtempSync(join(tmpdir(), 'sluice-watch-'))
  let changes = 0
  const watching = watchFolders(root, () => changes++)
  onTestFinished(() => {
    watching.close()
    for (const folder of [root, app]) rmSync(folder, { recursive: true })
  })
  watching.update([app])
  writeFileSync(join(app, 'worker.ts'), '1')
  watching.update([app])
  await expect.poll(() => changes).toBeGreaterThan(0)
})
