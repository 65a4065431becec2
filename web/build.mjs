// Builds the page into one file: script and style inline, compressed, the same bytes each time.
//
//   node build.mjs FILE    writes FILE (page.html.gz)
//
// The comment of the gzip header names the hashes of script and style, from which the server makes
// its Content-Security-Policy (src/server/webui.h). GNU gzip compresses, since what zlib makes
// depends on the build of node.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';
import config from './vite.config.js';

const root = dirname(fileURLToPath(import.meta.url));

async function bundle() {
  const built = await build({
    ...config,
    configFile: false,
    root,
    logLevel: 'warn',
    build: {
      write: false,
      target: 'es2022',
      cssCodeSplit: false,
      modulePreload: false,
      rollupOptions: { input: join(root, 'src/main.jsx'), output: { format: 'iife' } },
    },
  });
  const files = (Array.isArray(built) ? built[0] : built).output;
  const script = files.find((file) => file.type === 'chunk').code.trim();
  const style = String(files.find((file) => file.fileName.endsWith('.css')).source).trim();
  return { script: script.replaceAll('</script', '<\\/script'), style };
}

const digest = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

const { script, style } = await bundle();
const html = readFileSync(join(root, 'index.html'), 'utf8')
  .replace('/*style*/', () => style)
  .replace('/*script*/', () => script);
const gzip = spawnSync('gzip', ['-9n'], { input: html, maxBuffer: 1 << 26 });
if (gzip.status !== 0) throw new Error(`gzip: ${gzip.error ?? gzip.stderr}`);
const header = Buffer.from(gzip.stdout.subarray(0, 10));
header[3] = 0x10; // a comment follows
header[9] = 0xff; // of no particular system
const comment = `script-src ${digest(script)}; style-src ${digest(style)}\0`;
writeFileSync(process.argv[2],
  Buffer.concat([header, Buffer.from(comment, 'latin1'), gzip.stdout.subarray(10)]));
