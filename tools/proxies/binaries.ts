import { findServer, outputOf, type ServerBinary, type ServerKind } from 'sluice-upstash-bridge'

/** The reverse proxies that have an example. The tests run them. */
export type ProxyName = 'nginx' | 'caddy'

const install = (name: ProxyName, variable: string) => `  macOS           brew install ${name}
  Debian, Ubuntu  sudo apt-get install ${name}
  elsewhere       set ${variable} to the binary`

const PROXIES: Record<ProxyName, ServerKind> = {
  nginx: {
    title: 'nginx',
    variables: ['NGINX_BIN'],
    names: [{ name: 'nginx' }],
    folders: ['/usr/sbin', '/usr/local/sbin'], // often missing in the PATH of a user
    install: install('nginx', 'NGINX_BIN'),
    cache: 'sluice-nginx',
    wanted: 'nginx',
    // nginx 1.22 of Debian 12 and the packages that a minimal system lacks.
    fallback: ['nginx', 'nginx-common', 'libssl3'],
    file: 'usr/sbin/nginx',
    argv0: 'nginx',
    versionOf(binary) {
      const text = outputOf(binary, '-V')
      const version = /^nginx version: nginx\/(\S+)/m.exec(text)?.[1]
      if (!version) throw new Error(`unexpected version output: "${text.trim().slice(0, 200)}"`)
      if (!text.includes('--with-http_auth_request_module'))
        throw new Error(`nginx ${version} is built without auth_request`)
      return `nginx ${version}`
    },
  },
  caddy: {
    title: 'Caddy',
    variables: ['CADDY_BIN'],
    names: [{ name: 'caddy' }],
    install: install('caddy', 'CADDY_BIN'),
    cache: 'sluice-caddy',
    wanted: 'caddy',
    fallback: ['caddy'],
    file: 'usr/bin/caddy',
    argv0: 'caddy',
    versionOf(binary) {
      const text = outputOf(binary, 'version')
      const version = /^v?(2\.\d+\.\d+)/m.exec(text)?.[1]
      if (!version) throw new Error(`unexpected version output: "${text.trim().slice(0, 200)}"`)
      return `Caddy ${version}`
    },
  },
}

/** Finds the binary of a proxy. @throws Error with installation instructions */
export const findProxy = (name: ProxyName, log?: (line: string) => void): Promise<ServerBinary> =>
  findServer(PROXIES[name], log)
