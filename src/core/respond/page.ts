import { waitOf } from '../base/duration.ts'

const STYLE =
  'html{color-scheme:light dark;font:1.2em system-ui;max-width:30em;margin:15vh auto;padding:1em}'

/** Counts down the number in the page once in each of its units, whose seconds are the id. */
const SCRIPT =
  'b=document.querySelector("b");setInterval(()=>b.textContent>0&&b.textContent--,b.id*1e3)'

export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)

/** Makes the page of a problem document for browsers. It loads nothing, and is complete without its script and without `Retry-After`. */
export async function pageOf(document: Response): Promise<Response> {
  const { title, detail } = (await document.json()) as { title: string; detail: string }
  // The `Response` of `@hono/node-server`, which may be the global one, has other headers once its body is read.
  const { headers } = document
  const nonce = crypto.randomUUID()
  const wait = Number(headers.get('Retry-After'))
  const { count, short, size } = waitOf(wait * 1_000)
  const [name, text] = wait
    ? [
        'Too many requests',
        `You can <a href="">try again</a> in <b id=${size / 1_000}>${count}</b> ${short === 'm' ? 'min' : short}.<script nonce=${nonce}>${SCRIPT}</script>`,
      ]
    : [title, escapeHtml(detail)]
  headers.set('Content-Type', 'text/html;charset=utf-8')
  // The nonce allows the style and the script. No image, font or connection can have one.
  headers.set('Content-Security-Policy', `default-src 'nonce-${nonce}';base-uri 'none'`)
  return new Response(
    `<!doctype html><html lang=en><meta name=viewport content="width=device-width"><title>${name}</title><style nonce=${nonce}>${STYLE}</style><h1>${name}</h1><p>${text}`,
    document,
  )
}
