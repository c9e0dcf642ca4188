// A Worker that makes the calls of a test, and answers with what it gets.
export default {
  async fetch(request, env) {
    const { binding = 'ANY', method, call } = await request.json()
    try {
      return Response.json({ answer: await env[binding][method](call) })
    } catch ({ name, message }) {
      return Response.json({ name, message })
    }
  },
}
