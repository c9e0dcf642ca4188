import { existsSync, type FSWatcher, watch } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
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

/** Watches the settings files of a project, its source, and the folders of the files that its Worker imports. */
export function watchFolders(root: string, changed: () => void) {
  const add = (folder: string, recursive: boolean, isOurs: (name: string) => boolean) => {
    const watcher = watch(folder, { recursive }, (_, name) => {
      if (name !== null && isOurs(name)) changed()
    })
    return watcher.on('error', () => {})
  }
  const isSource = (name: string) => /\.([cm]?[jt]s|lua|json)$/.test(name)
  // `sluice dev` itself writes the module of `sluice build`.
  const isRoot = (name: string) =>
    SETTINGS.includes(name) || (/\.[cm]?[jt]s$/.test(name) && name !== 'sluice.built.ts')
  const src = join(root, 'src')
  const known = [
    add(root, false, isRoot),
    ...[src, join(root, 'lua')]
      .filter((folder) => existsSync(folder))
      .map((folder) => add(folder, true, isSource)),
  ]
  let others: FSWatcher[] = []
  const closeAll = (watchers: FSWatcher[]) => {
    for (const watcher of watchers) watcher.close()
  }
  return {
    /**
     * Replaces the watchers of the imported folders. A folder may have been removed and created again. The new watchers start first:
     * an event that waits for a watcher that is closed is lost.
     */
    update(folders: string[]) {
      const before = others
      others = folders
        .filter((folder) => folder !== root && !`${folder}/`.startsWith(`${src}/`))
        .flatMap((folder) => {
          try {
            return [add(folder, false, isSource)]
          } catch {
            return [] // the folder has been removed
          }
        })
      closeAll(before)
    },
    close: () => closeAll([...known, ...others]),
  }
}
