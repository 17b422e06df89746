import type { Texts } from "./texts.ts";

const HOW = "Kopieren Sie den Schlüssel, der neben dem QR-Code steht, oder den ganzen otpauth://-Link.";

export const de: Texts = {
  language: "Sprache",
  foot: "Sichere Verbindungsseite von Latchkey",
  help: "Hilfe von {account}",
  error_title: "Fehler: {title}",
  test_mode: "Testmodus",
  test_note: "Nichts, was hier eingegeben wird, geht an ein echtes System.",
  test_values: "Werte für Tests",

  connect_title: "{system} verbinden",
  asks: "{account} möchte sich mit Ihrem Konto bei {system} verbinden.",
  sign_in_there:
    "Sie melden sich bei {host} an, stimmen dort zu und kommen hierher zurück. Was Sie dort eingeben, bleibt dort.",
  used_at: "Nur verwendet bei",
  stored_how: "Verschlüsselt gespeichert. {account} sieht Ihre Eingaben nie.",
  stored_how_there: "Gespeichert wird nur die dort erteilte Erlaubnis, verschlüsselt.",
  facts_again: "Wie Ihre Zugangsdaten verwendet werden",
  goes_back: "Danach geht es zurück zu {host}.",
  optional: "(optional)",
  fields_more: "Freiwillige Angaben",
  please_choose: "Bitte wählen",
  error: "Fehler:",
  connect: "Verbinden",
  continue_to: "Weiter zu {host}",
  back_to: "Zurück zu {account}",
  caution:
    "Wenn Sie nicht von {account} hierher gekommen sind, schließen Sie diese Seite: Es wurde nichts weitergegeben.",
  elsewhere_heading: "Dieser Link wurde zuvor in einem anderen Browser geöffnet",
  elsewhere_you: "Haben Sie ihn dort selbst geöffnet, machen Sie einfach weiter.",
  elsewhere_other:
    "Hat jemand den Link an Sie weitergegeben, schließen Sie diese Seite. Was Sie hier eingeben, würde für diese Person verbunden, nicht für Sie: {account} hat den Link für eine einzige Person erstellt.",
  check_entries: "Bitte prüfen Sie Ihre Eingaben",
  secrets_again:
    "Passwörter und andere geheime Angaben werden nicht wieder ausgefüllt. Bitte geben Sie sie noch einmal ein.",
  not_connected: "{system} ist nicht verbunden",
  refused:
    "Die Anmeldung wurde dort abgebrochen oder abgelehnt. Es wurde nichts gespeichert. Sie können es unten erneut versuchen oder diese Seite schließen.",
  failed_heading: "Die Anmeldung konnte nicht abgeschlossen werden",
  failed:
    "Das war ein technisches Problem, nicht Ihr Fehler. Es wurde nichts gespeichert. Bitte versuchen Sie es unten erneut.",
  failed_again: "Wenn es wieder nicht gelingt, sagen Sie bitte {account} Bescheid.",
  stale_heading: "Diese Seite war lange geöffnet",
  stale:
    "Zu Ihrer Sicherheit wurde nichts gespeichert. Bitte prüfen Sie das Formular und senden Sie es noch einmal.",

  header_name: "Name",
  header_value: "Wert",
  header_name_of: "{field}, Name {number}",
  header_value_of: "{field}, Wert {number}",
  header_more: "Weitere hinzufügen",
  header_add: "Noch eine Zeile",
  header_remove: "Zeile {number} entfernen",
  show: "Anzeigen",
  hide: "Verbergen",
  sending: "Wird gesendet …",
  unsent:
    "Es wurde nichts gesendet, und Ihre Eingaben sind noch da. Bitte prüfen Sie Ihre Internetverbindung und versuchen Sie es noch einmal.",
  totp_why:
    "Nur nötig, wenn Sie sich mit 6-stelligen Codes aus einer App anmelden. Gemeint ist der Schlüssel, mit dem die App eingerichtet wurde, nicht einer der Codes.",
  totp_help:
    "In den Sicherheitseinstellungen Ihres Kontos, dort, wo eine Authenticator-App eingerichtet wird. Der Schlüssel ist die lange Reihe von Buchstaben und Ziffern neben dem QR-Code; auch der ganze otpauth://-Link ist möglich.",
  totp_where: "Wo finde ich ihn?",
  qr_choose: "Bild des QR-Codes einlesen",
  qr_local: "Das Bild bleibt auf Ihrem Gerät.",
  qr_reading: "Das Bild wird gelesen …",
  qr_found: "Der Schlüssel wurde aus dem Bild gelesen.",
  qr_none:
    "In diesem Bild wurde kein QR-Code eines Authenticators gefunden. Versuchen Sie es mit einem schärferen Bild, oder geben Sie den Schlüssel ein.",

  checking_heading: "{system} wird gefragt…",
  checking:
    "Ihre Zugangsdaten werden bei {system} ausprobiert. Das dauert meist nur einige Sekunden. Bitte lassen Sie diese Seite geöffnet.",
  checking_look: "Ergebnis ansehen",
  rejected_heading: "{system} hat diese Zugangsdaten nicht angenommen",
  rejected: "Es wurde nichts gespeichert. Bitte prüfen Sie Ihre Eingaben und versuchen Sie es noch einmal.",
  limited_heading: "{system} hat mehrere Anmeldungen abgelehnt",
  limited:
    "Damit Ihr Konto dort nicht gesperrt wird, wird vorerst keine weitere Anmeldung versucht, und es wurde nichts gespeichert. Prüfen Sie inzwischen, ob Sie sich bei {system} selbst anmelden können.",
  again_when: "Sie können es {when} noch einmal versuchen.",
  too_often:
    "In kurzer Zeit wurden zu viele Formulare gesendet, deshalb wurde dieses nicht angenommen. Es wurde nichts gespeichert.",
  accepted: "{system} hat Ihre Zugangsdaten angenommen. {account} kann sie jetzt verwenden.",
  unanswered: "{system} hat nicht rechtzeitig geantwortet, ob die Zugangsdaten stimmen.",

  success_heading: "Ihre Zugangsdaten sind gespeichert",
  success:
    "Ihre Zugangsdaten für {system} sind sicher gespeichert. Ob sie stimmen, zeigt sich, wenn {account} sie zum ersten Mal verwendet.",
  success_again: "Nimmt {system} sie nicht an, erfährt {account} es und kann Sie erneut darum bitten.",
  connected: "{system} ist verbunden",
  connected_how:
    "{system} hat Ihre Anmeldung angenommen. {account} kann die Erlaubnis verwenden, die Sie dort erteilt haben.",
  go_on: "Sie können jetzt bei {account} weitermachen.",
  close_now: "Sie können diese Seite schließen.",
  used_heading: "Dieser Link wurde bereits benutzt",
  used: "Das zugehörige Formular wurde bereits ausgefüllt und gesendet. Wenn Sie das waren, ist nichts mehr zu tun: Sie können diese Seite schließen.",
  used_other: "Wenn nicht, sagen Sie bitte denen Bescheid, die Ihnen den Link geschickt haben.",
  used_other_of: "Wenn nicht, sagen Sie bitte {account} Bescheid.",
  expired_heading: "Dieser Link ist abgelaufen",
  expired: "Links gelten nur für begrenzte Zeit. Es wurde nichts gespeichert.",
  ask_again:
    "Gehen Sie zurück zu der Anwendung, die Sie hierher geschickt hat, und beginnen Sie dort neu, um einen neuen Link zu erhalten.",
  ask_again_of: "Gehen Sie zurück zu {account} und beginnen Sie dort neu, um einen neuen Link zu erhalten.",
  typed_heading: "Ihre Eingaben",
  typed: "Sie können es von hier kopieren; geheime Angaben werden nicht gezeigt.",
  unknown_heading: "Dieser Link funktioniert nicht",
  unknown:
    "Vielleicht fehlt ein Teil der Adresse, etwa weil eine Nachricht sie auf zwei Zeilen verteilt hat. Bitte kopieren Sie den ganzen Link und öffnen Sie ihn noch einmal.",
  unknown_next:
    "Wenn das nicht hilft, bitten Sie denjenigen, der ihn geschickt hat, um einen neuen Link. Hier wurde nichts gespeichert.",
  return_heading: "Diese Anmeldung kann nicht fortgesetzt werden",
  return_unknown:
    "Sie wurde in einem anderen Browser begonnen oder hat zu lange gedauert. Es wurde nichts verbunden.",
  return_spent:
    "Sie sind von ihr schon einmal zurückgekommen, und jede Anmeldung zählt nur einmal. Diesmal wurde nichts verbunden.",
  return_next: "Bitte öffnen Sie Ihren Link erneut und beginnen Sie dort.",
  forbidden_heading: "Bitte füllen Sie das Formular noch einmal aus",
  forbidden:
    "Was gesendet wurde, kam nicht von der Seite dieses Links, oder die Seite war zu alt. Deshalb wurde es nicht angenommen, und es wurde nichts gespeichert.",
  forbidden_next: "Bitte öffnen Sie Ihren Link erneut und füllen Sie das Formular dort aus.",
  too_large_heading: "Das ist zu viel",
  too_large: "Ihre Eingaben sind größer, als dieses Formular aufnehmen kann. Es wurde nichts gespeichert.",
  too_large_of: "„{field}“ ist größer, als dieses Formular aufnehmen kann. Es wurde nichts gespeichert.",
  too_large_next: "Bitte öffnen Sie Ihren Link erneut und achten Sie darauf, das Richtige einzufügen.",
  problem_heading: "Bei uns ist etwas schiefgegangen",
  problem: "Bitte warten Sie eine Minute und öffnen Sie Ihren Link dann erneut.",
  problem_saved:
    "Meldet der Link dann, dass er schon verwendet wurde, sind Ihre Zugangsdaten gespeichert. Sonst wurde nichts gespeichert.",
  problem_nothing: "Es wurde nichts gespeichert.",
  problem_done: "Ihre Zugangsdaten wurden trotzdem gespeichert: Hier ist nichts mehr zu tun.",
  open_again: "Link erneut öffnen",

  picker_heading: "Was möchten Sie verbinden?",
  picker_lead: "{account} kann damit für Sie arbeiten. Wählen Sie, womit es losgeht.",
  choose_other: "Etwas anderes wählen",
  step_of: "Schritt {number} von {count}",
  next_is: "Danach: {system}",
  cancel: "Abbrechen",
  close: "Schließen",
  done: "Fertig",
  needs_script:
    "Dieses Formular braucht JavaScript. Bitte erlauben Sie es für diese Seite und laden Sie sie neu.",
  loading: "Wird geladen …",
  window_heading: "Weiter im anderen Fenster",
  window_lead:
    "Melden Sie sich bei {host} in dem Fenster an, das sich geöffnet hat. Danach geht es hier von selbst weiter.",
  window_blocked: "Ihr Browser hat das Fenster nicht geöffnet. Öffnen Sie es mit der Schaltfläche unten.",
  window_opening: "Die Anmeldeseite wird geöffnet …",
  window_open: "{host} öffnen",
  window_again: "Fenster noch einmal öffnen",
  start_over: "Von vorn beginnen",
  window_back:
    "Sie können dieses Fenster schließen und auf der Seite weitermachen, von der Sie gekommen sind.",
  close_window: "Dieses Fenster schließen",
  window_refused: "Sie haben dort abgebrochen oder nicht zugestimmt. Es wurde nichts gespeichert.",
  window_failed: "Das war ein technisches Problem, nicht Ihr Fehler. Es wurde nichts gespeichert.",
  window_retry:
    "Schließen Sie dieses Fenster und versuchen Sie es auf der Seite, von der Sie gekommen sind, noch einmal.",
  window_cut_off_heading: "Dieses Fenster wird nicht gebraucht",
  window_cut_off: "Sie haben sich hier noch nicht angemeldet, und es wurde nichts gespeichert.",
  frame_caution:
    "Wenn Sie das von {account} nicht erwartet haben, brechen Sie ab: Es wurde nichts weitergegeben.",
  frame_refused:
    "Die Anmeldung wurde dort abgebrochen oder abgelehnt. Es wurde nichts gespeichert. Sie können es unten erneut versuchen oder abbrechen.",
  frame_expired_heading: "Die Zeit dafür ist abgelaufen",
  frame_expired:
    "Hier kann nichts mehr eingegeben werden, und es wurde nichts weiter gespeichert. Bitte schließen Sie dies und beginnen Sie neu.",
  frame_used_heading: "Das ist schon erledigt",
  frame_used: "Ihre Zugangsdaten sind bereits angekommen. Hier ist nichts mehr zu tun.",
  frame_limit_heading: "Zu viele Versuche",
  frame_limit:
    "Dieses Formular wurde zu oft gesendet und nimmt nichts mehr an. Es wurde nichts weiter gespeichert. Schließen Sie es und beginnen Sie neu: Sie müssen nicht warten.",
  frame_unknown_heading: "Das lässt sich nicht öffnen",
  frame_unknown:
    "Es gehört zu einer anderen Seite oder ist nicht mehr gültig. Es wurde nichts gespeichert. Schließen Sie es, laden Sie die Seite neu und beginnen Sie noch einmal.",
  frame_problem: "Es wurde nichts weiter gespeichert. Bitte versuchen Sie es in einer Minute noch einmal.",
  offline_heading: "Die Verbindung ist unterbrochen",
  offline: "Bitte prüfen Sie Ihre Internetverbindung und versuchen Sie es noch einmal.",
  offline_kept:
    "Ihre Eingaben sind noch da. Sie können sie gefahrlos noch einmal senden: Gespeichert wird nur einmal.",
  try_again: "Noch einmal versuchen",

  issues: {
    required: "{field}: Diese Angabe fehlt.",
    must_tick: "Bitte bestätigen Sie mit einem Häkchen: {field}",
    too_long: "{field}: Das ist zu lang.",
    file_too_large: "{field}: Die Datei ist zu groß; sie darf höchstens {size} KB haben.",
    too_short: {
      one: "{field}: Nötig ist mindestens {count} Zeichen.",
      other: "{field}: Nötig sind mindestens {count} Zeichen.",
    },
    over_maximum: {
      one: "{field}: Erlaubt ist höchstens {count} Zeichen.",
      other: "{field}: Erlaubt sind höchstens {count} Zeichen.",
    },
    pattern: "{field}: Das hat nicht die erwartete Form. Bitte prüfen Sie es.",
    url: "{field}: Hier muss eine Webadresse wie https://www.example.com stehen.",
    email: "{field}: Hier muss eine E-Mail-Adresse wie name@example.com stehen.",
    choice: "{field}: Bitte wählen Sie eine der Möglichkeiten.",
    not_text:
      "{field}: Das ist keine Textdatei. Ein Zertifikat oder Schlüssel muss im PEM-Format sein, das mit -----BEGIN anfängt; Dateien im Format PKCS#12 (.p12, .pfx) oder DER lassen sich umwandeln.",
    header_unnamed: "{field}: Ein Header hat einen Wert, aber keinen Namen.",
    header_empty: "{field}: Ein Header hat einen Namen, aber keinen Wert.",
    header_name:
      "{field}: Der Name eines Headers besteht nur aus Buchstaben, Ziffern und Bindestrichen, wie X-Api-Key.",
    header_reserved: "{field}: Einen dieser Header setzt die Verbindung selbst. Bitte lassen Sie ihn weg.",
    header_value: "{field}: Der Wert eines Headers enthält Zeichen, die dort nicht stehen können.",
    header_twice: "{field}: Ein Header kommt zweimal vor.",
    totp_migration: `Das ist ein Link, mit dem Konten auf ein anderes Telefon umziehen; er enthält keinen einzelnen Schlüssel. ${HOW}`,
    totp_other_link: `Das ist ein Link, aber keiner, der mit otpauth://totp/ beginnt. ${HOW}`,
    totp_code: `Das sieht nach einem Code aus einer Authenticator-App aus. Bitte geben Sie stattdessen den Einrichtungsschlüssel ein, aus dem die Codes erzeugt werden. ${HOW}`,
    totp_counter:
      "Dieser Schlüssel ist für zählerbasierte Codes, die nicht unterstützt werden. Bitte verwenden Sie einen Schlüssel für zeitbasierte Codes.",
    totp_kind: `Der Link muss mit otpauth://totp/ beginnen. ${HOW}`,
    totp_twice: `Der Link nennt eine seiner Einstellungen zweimal. ${HOW}`,
    totp_encoder: "Der Link ist für eine besondere Art von Codes, die nicht unterstützt wird.",
    totp_algorithm: "Der Link verlangt ein anderes Verfahren als SHA1, SHA256 und SHA512.",
    totp_digits: "Der Link verlangt Codes, die nicht {min} bis {max} Ziffern haben.",
    totp_period: "Der Link verlangt Codes, die nicht alle {min} bis {max} Sekunden wechseln.",
    totp_no_key: `Der Link enthält keinen geheimen Schlüssel. ${HOW}`,
    totp_empty: `Der geheime Schlüssel ist leer. ${HOW}`,
    totp_letters: `Ein geheimer Schlüssel besteht nur aus den Buchstaben A bis Z und den Ziffern 2 bis 7. Dieser enthält andere Zeichen. ${HOW}`,
    totp_length: `Im geheimen Schlüssel scheint ein Zeichen zu fehlen oder zu viel zu sein. ${HOW}`,
    totp_short: `Der geheime Schlüssel ist zu kurz, um vollständig zu sein. ${HOW}`,
    certificate_none:
      "Das enthält kein Zertifikat im PEM-Format, das mit -----BEGIN CERTIFICATE----- anfängt.",
    certificate_broken: "Dieses Zertifikat ist nicht lesbar. Vielleicht ist es unvollständig.",
    certificate_expired: "Dieses Zertifikat ist abgelaufen.",
    key_other: "Dieser Schlüssel gehört nicht zu dem Zertifikat.",
    key_none:
      "Das enthält keinen privaten Schlüssel im PEM-Format, der mit -----BEGIN PRIVATE KEY----- anfängt.",
    key_locked: "Dieser Schlüssel ist durch ein Kennwort geschützt, das nicht angegeben wurde.",
    key_wrong_passphrase: "Der Schlüssel lässt sich mit diesem Kennwort nicht öffnen.",
    key_broken: "Dieser Schlüssel ist nicht lesbar. Vielleicht ist er unvollständig.",
  },
};
