/** Cloudflare's rate limiting binding. */
interface Env {
  LIMITER: { limit(options: { key: string }): Promise<{ success: boolean }> }
}

export default {
  async fetch(request: Request, env: Env) {
    const key = request.headers.get('cf-connecting-ip') ?? ''
    const { success } = await env.LIMITER.limit({ key })
    return new Response(success ? 'ok' : 'refused', { status: success ? 200 : 429 })
  },
}
