import { readFile } from 'node:fs/promises'
import type { ProxyName } from './binaries.ts'

/** The settings that an operator writes into an example. */
export interface Settings {
  /** The Worker's URL, such as `http://127.0.0.1:8787`. */
  api: string
  token: string
  /** The app's URL. */
  app: string
  /** What happens to requests while the Worker is down or fails. */
  undecided: 'pass' | 'refuse'
  /** Time limit of a decision. Defaults to the value in the example, 1 s. */
  patience?: string
}

/** Where the proxy runs. On an operator's system the distribution decides this. */
export interface Place {
  port: number
  /** A folder for this proxy only. */
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
      // The default folders of nginx belong to root.
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
      // No certificates, no admin port, loopback only.
      [
        /^www\.example\.com \{/m,
        `{\n\tadmin off\n\tauto_https off\n}\n\nhttp://:${port} {\n\tbind 127.0.0.1`,
      ],
    ],
  },
}

/** The text of an example with these settings filled in. */
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
    // A missing marker would leave the example partly configured.
    const isFound = typeof marker === 'string' ? before.includes(marker) : marker.test(before)
    if (!isFound) throw new Error(`the example for ${name} has no ${marker} to replace`)
  }
  return text
}
