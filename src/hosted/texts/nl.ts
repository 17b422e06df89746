import type { Texts } from "./texts.ts";

const HOW = "Kopieer de sleutel die naast de QR-code staat, of de volledige otpauth://-link.";

export const nl: Texts = {
  language: "Taal",
  foot: "Beveiligde verbindingspagina van Latchkey",
  help: "Hulp van {account}",
  error_title: "Fout: {title}",
  test_mode: "Testmodus",
  test_note: "Niets wat hier wordt ingevoerd, gaat naar een echt systeem.",
  test_values: "Waarden voor tests",

  connect_title: "{system} koppelen",
  asks: "{account} wil graag verbinding maken met uw account bij {system}.",
  sign_in_there:
    "U logt in en geeft toestemming bij {host}, en komt daarna hier terug. Wat u daar invult, blijft daar.",
  used_at: "Alleen gebruikt bij",
  stored_how: "Versleuteld opgeslagen. {account} ziet nooit wat u invult.",
  stored_how_there: "Alleen de toestemming die u daar geeft, wordt bewaard, versleuteld.",
  facts_again: "Hoe uw inloggegevens worden gebruikt",
  goes_back: "Daarna gaat u terug naar {host}.",
  optional: "(optioneel)",
  fields_more: "Optionele gegevens",
  please_choose: "Maak een keuze",
  error: "Fout:",
  connect: "Koppelen",
  continue_to: "Doorgaan naar {host}",
  back_to: "Terug naar {account}",
  caution: "Bent u hier niet via {account} gekomen? Sluit dan deze pagina: er is niets gedeeld.",
  elsewhere_heading: "Deze link is eerder in een andere browser geopend",
  elsewhere_you: "Hebt u hem daar zelf geopend, ga dan gewoon verder.",
  elsewhere_other:
    "Heeft iemand u de link doorgestuurd, sluit dan deze pagina. Wat u hier invoert, zou aan die persoon worden gekoppeld en niet aan u: {account} heeft de link voor één persoon gemaakt.",
  check_entries: "Controleer wat u hebt ingevuld",
  secrets_again:
    "Wachtwoorden en andere geheime gegevens worden niet opnieuw ingevuld. Vul ze nog een keer in.",
  not_connected: "{system} is niet gekoppeld",
  refused:
    "Het inloggen is daar geannuleerd of geweigerd. Er is niets opgeslagen. U kunt het hieronder opnieuw proberen of deze pagina sluiten.",
  failed_heading: "Het inloggen kon niet worden voltooid",
  failed:
    "Dit was een technisch probleem, geen fout van u. Er is niets opgeslagen. Probeer het hieronder opnieuw.",
  failed_again: "Lukt het weer niet, laat het dan weten aan {account}.",
  stale_heading: "Deze pagina heeft lang opengestaan",
  stale: "Voor uw veiligheid is er niets opgeslagen. Kijk het formulier na en verstuur het nog een keer.",

  header_name: "Naam",
  header_value: "Waarde",
  header_name_of: "{field}, naam {number}",
  header_value_of: "{field}, waarde {number}",
  header_more: "Meer toevoegen",
  header_add: "Nog een rij toevoegen",
  header_remove: "Rij {number} verwijderen",
  show: "Tonen",
  hide: "Verbergen",
  sending: "Bezig met versturen…",
  unsent:
    "Er is niets verzonden en wat u hebt ingevoerd staat er nog. Controleer uw internetverbinding en probeer het opnieuw.",
  totp_why:
    "Alleen nodig als u inlogt met 6-cijferige codes uit een app. Het is de sleutel waarmee de app is ingesteld, niet een van de codes.",
  totp_help:
    "In de beveiligingsinstellingen van uw account, waar een authenticator-app wordt ingesteld. De sleutel is de lange reeks letters en cijfers naast de QR-code; de volledige otpauth://-link mag ook.",
  totp_where: "Waar vind ik deze?",
  qr_choose: "Een afbeelding van de QR-code scannen",
  qr_local: "De afbeelding blijft op uw apparaat.",
  qr_reading: "De afbeelding wordt gelezen…",
  qr_found: "De sleutel is uit de afbeelding gelezen.",
  qr_none:
    "In deze afbeelding is geen QR-code van een authenticator gevonden. Probeer een scherpere, of typ de sleutel over.",

  checking_heading: "{system} wordt gevraagd…",
  checking:
    "Uw inloggegevens worden bij {system} geprobeerd. Dat duurt meestal maar een paar seconden. Laat deze pagina open.",
  checking_look: "Resultaat bekijken",
  rejected_heading: "{system} heeft deze inloggegevens niet geaccepteerd",
  rejected: "Er is niets opgeslagen. Controleer wat u hebt ingevuld en probeer het opnieuw.",
  limited_heading: "{system} heeft meerdere inlogpogingen geweigerd",
  limited:
    "Om te voorkomen dat uw account daar wordt geblokkeerd, wordt er voorlopig niet meer ingelogd, en er is niets opgeslagen. Controleer intussen of u bij {system} zelf kunt inloggen.",
  again_when: "U kunt het {when} opnieuw proberen.",
  too_often:
    "Er zijn in korte tijd te veel formulieren verstuurd, dus dit is niet aangenomen. Er is niets opgeslagen.",
  accepted: "{system} heeft uw inloggegevens geaccepteerd. {account} kan ze nu gebruiken.",
  unanswered: "{system} heeft niet op tijd laten weten of de inloggegevens kloppen.",

  success_heading: "Uw inloggegevens zijn opgeslagen",
  success:
    "Uw inloggegevens voor {system} zijn veilig opgeslagen. Ze worden geprobeerd wanneer {account} ze voor het eerst gebruikt.",
  success_again:
    "Als {system} ze niet accepteert, krijgt {account} dat te horen en kan u er opnieuw om vragen.",
  connected: "{system} is verbonden",
  connected_how:
    "{system} heeft uw aanmelding geaccepteerd. {account} kan de toestemming gebruiken die u daar hebt gegeven.",
  go_on: "U kunt nu verder met {account}.",
  close_now: "U kunt deze pagina sluiten.",
  used_heading: "Deze link is al gebruikt",
  used: "Het formulier erachter is ingevuld en verstuurd. Was u dat, dan hoeft u niets meer te doen: u kunt deze pagina sluiten.",
  used_other: "Was u dat niet, laat het dan weten aan degene die u de link heeft gestuurd.",
  used_other_of: "Was u dat niet, laat het dan weten aan {account}.",
  expired_heading: "Deze link is verlopen",
  expired: "Links zijn maar beperkte tijd geldig. Er is niets opgeslagen.",
  ask_again:
    "Ga terug naar de toepassing die u hierheen heeft gestuurd en begin opnieuw om een nieuwe link te krijgen.",
  ask_again_of: "Ga terug naar {account} en begin opnieuw om een nieuwe link te krijgen.",
  typed_heading: "Wat u had ingevuld",
  typed: "U kunt het hier kopiëren; geheime gegevens worden niet getoond.",
  unknown_heading: "Deze link werkt niet",
  unknown:
    "Misschien ontbreekt een deel van het adres, bijvoorbeeld doordat een bericht het over twee regels heeft verdeeld. Kopieer de hele link en open hem opnieuw.",
  unknown_next:
    "Helpt dat niet, vraag dan degene die hem heeft gestuurd om een nieuwe link. Er is hier niets opgeslagen.",
  return_heading: "Het inloggen kan niet worden voortgezet",
  return_unknown: "Het is in een andere browser begonnen of duurde te lang. Er is niets gekoppeld.",
  return_spent:
    "U bent er al een keer van teruggekomen, en elke aanmelding telt maar één keer. Er is deze keer niets gekoppeld.",
  return_next: "Open uw link opnieuw en begin vanaf daar.",
  forbidden_heading: "Vul het formulier opnieuw in",
  forbidden:
    "Wat is verstuurd, kwam niet van de eigen pagina van deze link, of die pagina was te oud. Daarom is het niet aangenomen en is er niets opgeslagen.",
  forbidden_next: "Open uw link opnieuw en vul het formulier daar in.",
  too_large_heading: "Dit is te veel om te versturen",
  too_large: "Wat u hebt ingevuld, is groter dan dit formulier aankan. Er is niets opgeslagen.",
  too_large_of: "‘{field}’ is groter dan dit formulier aankan. Er is niets opgeslagen.",
  too_large_next: "Open uw link opnieuw en controleer of u het juiste plakt.",
  problem_heading: "Er is bij ons iets misgegaan",
  problem: "Wacht een minuut en open uw link dan opnieuw.",
  problem_saved:
    "Meldt de link dan dat hij al is gebruikt, dan is uw login opgeslagen. Anders is er niets opgeslagen.",
  problem_nothing: "Er is niets opgeslagen.",
  problem_done: "Uw inloggegevens zijn toch opgeslagen: u hoeft hier niets meer te doen.",
  open_again: "Link opnieuw openen",

  picker_heading: "Wat wilt u koppelen?",
  picker_lead: "{account} kan hiermee voor u werken. Kies waarmee u begint.",
  choose_other: "Iets anders kiezen",
  step_of: "Stap {number} van {count}",
  next_is: "Daarna: {system}",
  cancel: "Annuleren",
  close: "Sluiten",
  done: "Klaar",
  needs_script:
    "Dit formulier heeft JavaScript nodig. Sta het toe voor deze pagina en laad de pagina opnieuw.",
  loading: "Laden…",
  window_heading: "Ga verder in het andere venster",
  window_lead: "Log in bij {host} in het venster dat is geopend. Daarna gaat deze pagina vanzelf verder.",
  window_blocked: "Uw browser heeft het venster niet geopend. Open het met de knop hieronder.",
  window_opening: "De aanmeldpagina wordt geopend…",
  window_open: "{host} openen",
  window_again: "Venster opnieuw openen",
  start_over: "Opnieuw beginnen",
  window_back: "U kunt dit venster sluiten en verdergaan op de pagina waar u vandaan kwam.",
  close_window: "Dit venster sluiten",
  window_refused: "U hebt daar geannuleerd of geen toestemming gegeven. Er is niets opgeslagen.",
  window_failed: "Dit was een technisch probleem, geen fout van u. Er is niets opgeslagen.",
  window_retry: "Sluit dit venster en probeer het opnieuw op de pagina waar u vandaan kwam.",
  window_cut_off_heading: "Dit venster is niet nodig",
  window_cut_off: "U bent hier nog niet ingelogd en er is niets opgeslagen.",
  frame_caution: "Had u dit niet van {account} verwacht? Annuleer dan: er is niets gedeeld.",
  frame_refused:
    "Het inloggen is daar geannuleerd of geweigerd. Er is niets opgeslagen. U kunt het hieronder opnieuw proberen of annuleren.",
  frame_expired_heading: "De tijd is om",
  frame_expired:
    "Hier kan niets meer worden ingevuld en er is niets meer opgeslagen. Sluit dit en begin opnieuw.",
  frame_used_heading: "Dit is al gedaan",
  frame_used: "Uw inloggegevens zijn al ontvangen. U hoeft hier niets meer te doen.",
  frame_limit_heading: "Te veel pogingen",
  frame_limit:
    "Dit formulier is te vaak verstuurd en neemt niets meer aan. Er is niets meer opgeslagen. Sluit het en begin opnieuw: u hoeft niet te wachten.",
  frame_unknown_heading: "Dit kan niet worden geopend",
  frame_unknown:
    "Het hoort bij een andere pagina of is niet meer geldig. Er is niets opgeslagen. Sluit het, laad de pagina opnieuw en begin nog een keer.",
  frame_problem: "Er is niets meer opgeslagen. Probeer het over een minuut opnieuw.",
  offline_heading: "De verbinding is verbroken",
  offline: "Controleer uw internetverbinding en probeer het opnieuw.",
  offline_kept:
    "Wat u hebt ingevuld staat er nog. U kunt het gerust opnieuw verzenden: het wordt maar één keer opgeslagen.",
  try_again: "Opnieuw proberen",

  issues: {
    required: "{field}: dit veld is verplicht.",
    must_tick: "Vink het vakje aan om te bevestigen: {field}",
    too_long: "{field}: dit is te lang.",
    file_too_large: "{field}: het bestand is te groot; het mag hoogstens {size} kB zijn.",
    too_short: {
      one: "{field}: minstens {count} teken nodig.",
      other: "{field}: minstens {count} tekens nodig.",
    },
    over_maximum: {
      one: "{field}: hoogstens {count} teken toegestaan.",
      other: "{field}: hoogstens {count} tekens toegestaan.",
    },
    pattern: "{field}: dit heeft niet de verwachte vorm. Controleer het.",
    url: "{field}: vul een webadres in zoals https://www.example.com.",
    email: "{field}: vul een e-mailadres in zoals naam@example.com.",
    choice: "{field}: kies een van de mogelijkheden.",
    not_text:
      "{field}: dit is geen tekstbestand. Een certificaat of sleutel moet in PEM-vorm zijn, die met -----BEGIN begint; bestanden in PKCS#12-vorm (.p12, .pfx) of DER-vorm kunnen worden omgezet.",
    header_unnamed: "{field}: een header heeft een waarde, maar geen naam.",
    header_empty: "{field}: een header heeft een naam, maar geen waarde.",
    header_name:
      "{field}: de naam van een header bestaat alleen uit letters, cijfers en streepjes, zoals X-Api-Key.",
    header_reserved: "{field}: een van de headers wordt door de verbinding zelf gezet. Laat die weg.",
    header_value: "{field}: de waarde van een header bevat tekens die daar niet mogen staan.",
    header_twice: "{field}: een header staat er twee keer.",
    totp_migration: `Dat is een link om accounts tussen telefoons over te zetten; er staat geen afzonderlijke sleutel in. ${HOW}`,
    totp_other_link: `Dat is een link, maar niet een die met otpauth://totp/ begint. ${HOW}`,
    totp_code: `Dat lijkt op een code uit een authenticator-app. Vul in plaats daarvan de instelsleutel in waarmee de codes worden gemaakt. ${HOW}`,
    totp_counter:
      "Die sleutel is voor codes op basis van een teller, die niet worden ondersteund. Gebruik een sleutel voor codes op basis van tijd.",
    totp_kind: `De link moet met otpauth://totp/ beginnen. ${HOW}`,
    totp_twice: `De link noemt een van zijn instellingen twee keer. ${HOW}`,
    totp_encoder: "De link vraagt om codes van een bijzondere soort, die niet wordt ondersteund.",
    totp_algorithm: "De link vraagt om een ander algoritme dan SHA1, SHA256 en SHA512.",
    totp_digits: "De link vraagt om codes die geen {min} tot {max} cijfers hebben.",
    totp_period: "De link vraagt om codes die niet om de {min} tot {max} seconden veranderen.",
    totp_no_key: `De link bevat geen geheime sleutel. ${HOW}`,
    totp_empty: `De geheime sleutel is leeg. ${HOW}`,
    totp_letters: `Een geheime sleutel bestaat alleen uit de letters A tot en met Z en de cijfers 2 tot en met 7. Deze bevat andere tekens. ${HOW}`,
    totp_length: `De geheime sleutel lijkt een teken te weinig of te veel te hebben. ${HOW}`,
    totp_short: `De geheime sleutel is te kort om volledig te zijn. ${HOW}`,
    certificate_none:
      "Hier staat geen certificaat in PEM-vorm in, die met -----BEGIN CERTIFICATE----- begint.",
    certificate_broken: "Dit certificaat kan niet worden gelezen. Misschien is het onvolledig.",
    certificate_expired: "Dit certificaat is verlopen.",
    key_other: "Deze sleutel hoort niet bij het certificaat.",
    key_none: "Hier staat geen privésleutel in PEM-vorm in, die met -----BEGIN PRIVATE KEY----- begint.",
    key_locked: "Deze sleutel is beveiligd met een wachtwoordzin, die niet is opgegeven.",
    key_wrong_passphrase: "De sleutel gaat niet open met deze wachtwoordzin.",
    key_broken: "Deze sleutel kan niet worden gelezen. Misschien is hij onvolledig.",
  },
};
