import { existsSync, type FSWatcher, watch } from 'node:fs'
import { connect } from 'node:net'
import { basename, dirname, join } from 'node:path'
import { WRANGLER_FILES } from '../project/wrangler-config.ts'

const SETTINGS = ['sluice.config.ts', '.dev.vars', ...WRANGLER_FILES]

/** Keeps a connection to a port, and calls `onClosed` when nothing listens there any more. */
export function watchPort(port: number, onClosed: () => void) {
  const socket = connect(port, '127.0.0.1')
  socket.unref()
  let connected = false
  socket.on('connect', () => {
    connected = true
  })
  socket.on('error', () => {})
  socket.resume()
  socket.on('close', () => {
    if (connected) watchPort(port, onClosed)
    else onClosed()
  })
}

/** Watches the settings files of a project, its source, and the files that its Worker imports. */
export function watchFolders(root: string, changed: () => void) {
  let imported = new Set<string>()
  const add = (folder: string, recursive: boolean, isOurs = isSource) => {
    const watcher = watch(folder, { recursive }, (_, name) => {
      // `sluice dev` itself writes the module of `sluice build`.
      if (name === null || name === 'sluice.built.ts') return
      const isMoved = name === basename(folder) // the folder itself
      if (isMoved || isOurs(name) || imported.has(join(folder, name))) changed()
    })
    return watcher.on('error', () => {})
  }
  const isRoot = (name: string) => SETTINGS.includes(name) || /\.[cm]?[jt]sx?$/.test(name)
  const src = join(root, 'src')
  const known = [add(root, false, isRoot), ...(existsSync(src) ? [add(src, true)] : [])]
  let others: FSWatcher[] = []
  const closeAll = (watchers: FSWatcher[]) => {
    for (const watcher of watchers) watcher.close()
  }
  return {
    /**
     * Replaces the watchers of the imported files, without those of packages. A folder may have been removed and created again, also `src`,
     * and a recursive watcher does not see edits of a file that was replaced. The new watchers start first: an event that waits for a
     * watcher that is closed is lost.
     */
    update(files: string[]) {
      const before = others
      imported = new Set(files.filter((file) => !file.includes('/node_modules/')))
      const folders = new Set([...imported].map(dirname))
      folders.delete(root)
      others = [...folders].flatMap((folder) => {
        try {
          return [add(folder, false)]
        } catch {
          return [] // the folder has been removed
        }
      })
      closeAll(before)
    },
    close: () => closeAll([...known, ...others]),
  }
}

const isSource = (name: string) => /\.([cm]?[jt]sx?|json)$/.test(name)
