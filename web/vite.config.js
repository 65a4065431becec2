// `npm run dev` serves the sources and takes the API from a running `banyan serve`.
const server = process.env.BANYAN_URL ?? 'http://127.0.0.1:30000';
const paths = ['/v1', '/health', '/metrics', '/server_info', '/radix_tree', '/decode_limit',
  '/flush_cache', '/generate', '/tokenize', '/props'];

export default {
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact', legalComments: 'none' },
  server: { proxy: Object.fromEntries(paths.map((path) => [path, server])) },
};
