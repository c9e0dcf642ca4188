/** A registry of npm that has the packed package under its name, and sends all other requests on to the registry of this machine. */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import { read } from '../../support/pages.ts'

export async function startRegistry(tarball: string) {
  const { stdout } = await promisify(execFile)('npm', ['config', 'get', 'registry'])
  const registry = stdout.trim().replace(/\/?$/, '')
  const manifest = JSON.parse(read('package.json'))
  const { name, version } = manifest
  const file = await readFile(tarball)
  const server = createServer((request, response) => {
    const { port } = server.address() as AddressInfo
    if (request.url === `/${name}`) {
      const dist = { tarball: `http://127.0.0.1:${port}/${name}.tgz` }
      const versions = { [version]: { ...manifest, dist } }
      response.setHeader('Content-Type', 'application/json')
      response.end(JSON.stringify({ name, 'dist-tags': { latest: version }, versions }))
    } else if (request.url === `/${name}.tgz`) response.end(file)
    else response.writeHead(307, { Location: registry + request.url }).end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/`,
    close: () => new Promise((resolve) => server.close(resolve)),
  }
}
