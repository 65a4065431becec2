// Numbers for people.

/** 1234567 as "1.2 M". */
export const count = (number) => number >= 1e6 ? `${(number / 1e6).toFixed(1)} M`
  : number >= 1e4 ? `${(number / 1e3).toFixed(0)} k` : String(Math.round(number));
