import { readFile } from 'node:fs/promises'
import type { ProxyName } from './binaries.ts'

/** What an operator would write into an example. */
export interface Settings {
  /** The Worker's URL, such as `http://127.0.0.1:8787`. */
  api: string
  token: string
  /** The app's URL. */
  app: string
  /** What becomes of requests while the Worker is away or fails. */
  undecided: 'pass' | 'refuse'
  /** How long a decision may take. Defaults to the example's own second. */
  patience?: string
}

/** Where the proxy is to run: what an operator's system settles and an example need not say. */
export interface Place {
  port: number
  /** A private folder. */
  folder: string
}

type Replacements = [marker: string | RegExp, value: string][]

const file = (path: string) => new URL(`../../examples/${path}`, import.meta.url)
const address = (url: string) => new URL(url).host
const host = (url: string) => new URL(url).hostname

const EXAMPLES: Record<
  ProxyName,
  { file: URL; replace(settings: Settings, place: Place): Replacements }
> = {
  nginx: {
    file: file('nginx/nginx.conf'),
    replace: ({ api, token, app, undecided, patience = '1s' }, { port, folder }) => [
      ['api.example.com:443', address(api)],
      ['https://sluice/', 'http://sluice/'],
      [/^ *proxy_ssl_trusted_certificate .*\n/gm, ''],
      ['api.example.com', host(api)],
      ['the-token-of-SLUICE_API_TOKEN', token],
      ['127.0.0.1:3000', address(app)],
      ['proxy_read_timeout 1s;', `proxy_read_timeout ${patience};`],
      ['listen 80;', `listen 127.0.0.1:${port};`],
      ['return 204;', undecided === 'pass' ? 'return 204;' : 'return 500;'],
      // The folders of a distribution's nginx belong to root.
      [
        /^http \{\n/m,
        `http {\n  access_log off;\n${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
          .map((name) => `  ${name}_temp_path ${folder}/${name};\n`)
          .join('')}`,
      ],
    ],
  },
  caddy: {
    file: file('caddy/Caddyfile'),
    replace: ({ api, token, app, undecided, patience = '1s' }, { port }) => [
      ['https://api.example.com', api],
      ['the-token-of-SLUICE_API_TOKEN', token],
      ['127.0.0.1:3000', address(app)],
      ['response_header_timeout 1s', `response_header_timeout ${patience}`],
      [
        /(?<=handle @undecided \{\n.*\n\s*)import app/,
        undecided === 'pass' ? 'import app' : 'respond 503',
      ],
      // No certificates, no port of administration, on loopback alone.
      [
        /^www\.example\.com \{/m,
        `{\n\tadmin off\n\tauto_https off\n}\n\nhttp://:${port} {\n\tbind 127.0.0.1`,
      ],
    ],
  },
}

/** The example as an operator would copy it, with these settings in place of its own. */
export async function configure(
  name: ProxyName,
  settings: Settings,
  place: Place,
): Promise<string> {
  const example = EXAMPLES[name]
  let text = await readFile(example.file, 'utf8')
  for (const [marker, value] of example.replace(settings, place)) {
    const before = text
    text = typeof marker === 'string' ? text.replaceAll(marker, value) : text.replace(marker, value)
    // A marker that is gone would leave an example half configured.
    const there = typeof marker === 'string' ? before.includes(marker) : marker.test(before)
    if (!there) throw new Error(`the example for ${name} has no ${marker} to replace`)
  }
  return text
}
