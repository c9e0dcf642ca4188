// A Worker that uses Cloudflare's rate limiting binding. Only its wrangler file says who answers.
export default {
  async fetch(request, env) {
    const { searchParams } = new URL(request.url)
    const { success } = await env.LOGIN.limit({ key: searchParams.get('user') })
    if (!success) return new Response('too many', { status: 429 })
    return new Response('ok')
  },
}
