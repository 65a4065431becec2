const PATHS = {
  tree: 'M12 3v18M12 9C7 9 5 11 5 21M12 9c5 0 7 2 7 12M12 5C8 5 4 6 3 9M12 5c4 0 8 1 9 4',
  chat: 'M4 5h16v11H9l-5 4z',
  lab: 'M9 3h6M10 3v6L4.5 19a1.4 1.4 0 0 0 1.3 2h12.4a1.4 1.4 0 0 0 1.3-2L14 9V3M7.5 15h9',
  plus: 'M12 5v14M5 12h14',
  menu: 'M4 7h16M4 12h16M4 17h16',
  tune: 'M4 7h9M17 7h3M4 17h3M11 17h9M15 5v4M9 15v4',
  close: 'M6 6l12 12M18 6L6 18',
  send: 'M12 19V5M6 11l6-6 6 6',
  stop: 'M7 7h10v10H7z',
  clip: 'M20 11.5l-8 8a5 5 0 0 1-7-7l8.5-8.5a3.4 3.4 0 0 1 4.8 4.8L9.8 17.3a1.7 1.7 0 0 1-2.4-2.4l7.8-7.8',
  edit: 'M4 20h4L19 9l-4-4L4 16zM13 7l4 4',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  redo: 'M20 11a8 8 0 1 0-2.3 5.7M20 5v6h-6',
  left: 'M14 6l-6 6 6 6',
  right: 'M10 6l6 6-6 6',
  down: 'M6 10l6 6 6-6',
  more: 'M5 12h14M13 6l6 6-6 6',
  check: 'M5 12l5 5L20 7',
  trash: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13',
  file: 'M6 3h8l4 4v14H6zM14 3v4h4',
  key: 'M8 12a4 4 0 1 0 .1 0zM11 13l9-9M16 8l3 3',
  sun: 'M12 7a5 5 0 1 0 0 10a5 5 0 1 0 0-10M12 2v2M12 20v2M4 4l2 2M18 18l2 2M2 12h2M20 12h2M4 20l2-2M18 6l2-2',
  moon: 'M20 14A8 8 0 1 1 10 4a7 7 0 0 0 10 10z',
  half: 'M12 4a8 8 0 1 0 0 16zM12 4a8 8 0 0 1 0 16',
  bars: 'M5 20v-6M10 20V8M15 20v-9M20 20V4',
  tool: 'M14 6a4 4 0 0 1 5-1l-3 3 1 2 2 1 3-3a4 4 0 0 1-6 5L8 21a2 2 0 0 1-3-3l8-8a4 4 0 0 1 1-4z',
};

export const Icon = ({ name }) => (
  <svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d={PATHS[name]} /></svg>
);

export const Button = ({ icon, label, text, ...more }) => (
  <button type="button" class={text ? 'button' : 'icon-button'} aria-label={label}
    title={text ? undefined : label} {...more}>
    {icon && <Icon name={icon} />}{text}
  </button>
);
