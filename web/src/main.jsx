import { render } from 'preact';
import { pollNow } from './api.js';
import { App } from './app.jsx';
import { load, saveAll, startNew } from './conversations.js';
import { applyTheme, settings } from './settings.js';
import './style.css';

applyTheme(settings.value.theme);
startNew();
render(<App />, document.getElementById('app'));
load();
pollNow();
addEventListener('pagehide', saveAll);
