import { ask, type Binary } from '../../packages/upstash-bridge/src/binary.ts'
import type { Packages } from '../../packages/upstash-bridge/src/debian.ts'

/** The reverse proxies that the examples are for, and that tests run. */
export type ProxyName = 'nginx' | 'caddy'

export const PROXIES: Record<ProxyName, Packages & { variable: string }> = {
  nginx: {
    title: 'nginx',
    variable: 'NGINX_BIN',
    cache: 'sluice-nginx',
    wanted: 'nginx',
    // What nginx 1.22 of Debian 12 needs beyond a minimal system.
    fallback: ['nginx', 'nginx-common', 'libssl3'],
    file: 'usr/sbin/nginx',
    argv0: 'nginx',
    versionOf(binary) {
      const text = ask(binary, '-V')
      const version = /^nginx version: nginx\/(\S+)/m.exec(text)?.[1]
      if (!version) throw new Error(`it says "${text.trim().slice(0, 200)}"`)
      if (!text.includes('--with-http_auth_request_module'))
        throw new Error(`nginx ${version} is built without auth_request`)
      return `nginx ${version}`
    },
  },
  caddy: {
    title: 'Caddy',
    variable: 'CADDY_BIN',
    cache: 'sluice-caddy',
    wanted: 'caddy',
    fallback: ['caddy'],
    file: 'usr/bin/caddy',
    argv0: 'caddy',
    versionOf: (binary: Binary) => {
      const text = ask(binary, 'version')
      const version = /^v?(2\.\d+\.\d+)/m.exec(text)?.[1]
      if (!version) throw new Error(`it says "${text.trim().slice(0, 200)}"`)
      return `Caddy ${version}`
    },
  },
}
