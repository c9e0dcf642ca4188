import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { parseCli } from '../../packages/upstash-bridge/src/cli-options.ts'

const read = (name: string) =>
  readFileSync(new URL(`../../packages/upstash-bridge/${name}`, import.meta.url), 'utf8')

describe('compose.yaml', () => {
  const compose = parse(read('compose.yaml'), { merge: true })
  const nodes = Object.keys(compose.services).filter((name) => name.startsWith('redis-'))
  const { bridge, form } = compose.services

  test('It has six nodes in cluster mode, which publish no port and keep their data.', () => {
    expect(nodes).toHaveLength(6)
    for (const name of nodes) {
      const { command, image, ports, volumes } = compose.services[name]
      expect(command.join(' ')).toContain('--cluster-enabled yes')
      expect(image).toMatch(/^redis:\d+\.\d+\.\d+-/)
      expect([ports, volumes]).toEqual([undefined, [`${name}:/data`]])
      expect(compose.volumes).toHaveProperty([name])
    }
  })

  test('A service forms them to three masters with one replica each, before the bridge starts.', () => {
    expect(form.command.at(-1)).toContain('--cluster-replicas 1')
    for (const name of nodes) expect(form.command.at(-1)).toContain(`${name}:6379`)
    expect(Object.keys(form.depends_on)).toEqual(nodes)
    expect(bridge.depends_on.form.condition).toBe('service_completed_successfully')
  })

  test('The bridge accepts its command line, and has no rights that it does not need.', () => {
    const args = bridge.command.map((part: string) => (part === '/run/secrets/tokens' ? '' : part))
    const at = args.indexOf('--token-file')
    const options = parseCli(args.toSpliced(at, 2, '--token', 'secret'))
    expect(options).toMatchObject({
      cluster: ['redis://redis-1:6379', 'redis://redis-2:6379', 'redis://redis-3:6379'],
      allowHosts: ['bridge'],
    })
    expect(bridge).toMatchObject({
      read_only: true,
      user: 'node',
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
      ports: ['127.0.0.1:8079:8079'],
    })
    // Docker waits longer than the bridge, which then ends by itself.
    const grace = (options as { grace: number }).grace
    expect(Number.parseInt(bridge.stop_grace_period, 10) * 1000).toBeGreaterThan(grace)
  })
})

describe('Dockerfile', () => {
  const lines = read('Dockerfile').split('\n')

  test('The base image has an exact version, and the process is not root.', () => {
    expect(lines.filter((line) => line.startsWith('FROM '))).toEqual([
      expect.stringMatching(/^FROM node:\d+\.\d+\.\d+-bookworm-slim$/),
    ])
    expect(lines.lastIndexOf('USER node')).toBeGreaterThan(
      lines.findIndex((line) => line.startsWith('RUN')),
    )
  })

  test('The image contains the sources and the dependencies only.', () => {
    expect(lines.filter((line) => line.startsWith('COPY'))).toEqual([
      'COPY package.json ./',
      'COPY src ./src',
    ])
    expect(read('.dockerignore').trim().split('\n')).toEqual(['*', '!package.json', '!src'])
  })
})
