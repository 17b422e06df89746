import type { Texts } from "./texts.ts";

const HOW = "Copiez la clé affichée à côté du code QR, ou le lien otpauth:// complet.";

export const fr: Texts = {
  language: "Langue",
  foot: "Page de connexion sécurisée par Latchkey",
  help: "Aide de {account}",
  error_title: "Erreur : {title}",

  connect_title: "Connecter {system}",
  asks: "{account} souhaite se connecter à votre compte {system}.",
  sign_in_there:
    "Vous vous connectez et donnez votre accord sur {host}, puis vous revenez ici. Ce que vous saisissez là-bas y reste.",
  sign_in_at: "Connexion sur",
  used_at: "Utilisé seulement sur",
  stored: "Conservation",
  stored_how: "Chiffrée. {account} ne voit jamais ce que vous saisissez",
  stored_how_there: "Seulement l’autorisation donnée là-bas, chiffrée",
  afterwards: "Ensuite",
  can_close: "Vous pouvez fermer cette page",
  goes_back: "Vous revenez sur {host}",
  optional: "(facultatif)",
  please_choose: "Veuillez choisir",
  error: "Erreur :",
  connect: "Connecter",
  continue_to: "Continuer vers {host}",
  caution: "Si vous ne venez pas de {account}, fermez cette page : rien n’a été transmis.",
  check_entries: "Veuillez vérifier votre saisie",
  secrets_again:
    "Pour votre sécurité, les valeurs secrètes ne sont pas remplies à nouveau. Veuillez les saisir encore une fois.",
  not_connected: "{system} n’est pas connecté",
  refused:
    "La connexion y a été annulée ou refusée. Rien n’a été enregistré. Vous pouvez réessayer ci-dessous ou fermer cette page.",
  failed: "La connexion n’a pas pu aboutir. Rien n’a été enregistré. Veuillez réessayer ci-dessous.",
  stale_heading: "Cette page est restée ouverte longtemps",
  stale:
    "Pour votre sécurité, rien n’a été enregistré. Veuillez relire le formulaire et l’envoyer encore une fois.",

  header_name: "Nom",
  header_value: "Valeur",
  header_name_of: "{field}, nom {number}",
  header_value_of: "{field}, valeur {number}",
  header_more: "En ajouter d’autres",
  header_add: "Ajouter une ligne",
  header_remove: "Supprimer la ligne {number}",
  show: "Afficher",
  hide: "Masquer",
  sending: "Envoi en cours…",
  totp_help:
    "La clé secrète avec laquelle votre application d’authentification a été configurée, ou le lien otpauth:// complet. Elle est affichée à côté du code QR.",
  qr_choose: "La lire dans une image du code QR",
  qr_local: "L’image reste sur votre appareil.",
  qr_reading: "Lecture de l’image…",
  qr_found: "La clé a été lue dans l’image.",
  qr_none:
    "Aucun code QR d’application d’authentification n’a été trouvé dans cette image. Essayez une image plus nette, ou saisissez la clé.",

  success_heading: "C’est terminé",
  success:
    "Vos identifiants {system} ont été reçus et conservés en lieu sûr. {account} peut maintenant utiliser la connexion.",
  close_now: "Vous pouvez fermer cette page.",
  used_heading: "Ce lien a déjà été utilisé",
  used: "Le formulaire correspondant a été rempli et envoyé. Si c’était vous, il ne reste rien à faire : vous pouvez fermer cette page.",
  used_other: "Si ce n’était pas vous, prévenez les personnes qui vous ont envoyé le lien.",
  expired_heading: "Ce lien a expiré",
  ask_again: "Retournez à l’application qui vous a envoyé ici et recommencez pour obtenir un nouveau lien.",
  typed_heading: "Ce que vous aviez saisi",
  typed: "Rien n’a été enregistré. Vous pouvez le copier d’ici ; les valeurs secrètes ne sont pas affichées.",
  unknown_heading: "Ce lien ne fonctionne pas",
  unknown: "Veuillez vérifier que l’adresse a été copiée en entier.",
  return_heading: "Cette connexion ne peut pas continuer",
  return_unknown:
    "Elle a été commencée dans un autre navigateur, a duré trop longtemps ou est déjà terminée. Elle n’a rien connecté à l’instant.",
  return_next: "Veuillez rouvrir votre lien et recommencer à partir de là.",
  forbidden_heading: "Le formulaire n’a pas été accepté",
  forbidden:
    "Pour votre sécurité, un formulaire n’est accepté que depuis la page qui l’a affiché, et pendant un temps limité. Rien n’a été enregistré.",
  forbidden_next: "Veuillez rouvrir votre lien et y remplir le formulaire.",
  too_large_heading: "C’est trop long à envoyer",
  too_large: "Votre saisie dépasse ce que ce formulaire peut recevoir. Rien n’a été enregistré.",
  too_large_next: "Veuillez revenir en arrière et vérifier que vous avez collé le bon contenu.",
  problem_heading: "Un problème est survenu de notre côté",
  problem: "Veuillez patienter une minute, puis rouvrir votre lien.",

  issues: {
    required: "{field} : cette information manque.",
    must_tick: "{field} : cette case doit être cochée.",
    too_long: "{field} : c’est trop long.",
    file_too_large: "{field} : le fichier est trop volumineux ; il peut avoir {size} Ko au plus.",
    too_short: {
      one: "{field} : il faut au moins {count} caractère.",
      other: "{field} : il faut au moins {count} caractères.",
    },
    over_maximum: {
      one: "{field} : {count} caractère au plus.",
      other: "{field} : {count} caractères au plus.",
    },
    pattern: "{field} : la forme n’est pas celle attendue. Veuillez vérifier.",
    url: "{field} : indiquez une adresse web comme https://www.example.com.",
    email: "{field} : indiquez une adresse e-mail comme nom@example.com.",
    choice: "{field} : choisissez l’une des possibilités.",
    not_text:
      "{field} : ce n’est pas un fichier texte. Un certificat ou une clé doit être au format PEM, qui commence par -----BEGIN ; les fichiers PKCS#12 (.p12, .pfx) ou DER peuvent être convertis.",
    header_unnamed: "{field} : un en-tête a une valeur, mais pas de nom.",
    header_empty: "{field} : un en-tête a un nom, mais pas de valeur.",
    header_name:
      "{field} : le nom d’un en-tête ne contient que des lettres, des chiffres et des traits d’union, comme X-Api-Key.",
    header_reserved:
      "{field} : l’un de ces en-têtes est défini par la connexion elle-même. Veuillez le retirer.",
    header_value: "{field} : la valeur d’un en-tête contient des caractères qui n’y sont pas permis.",
    header_twice: "{field} : un en-tête figure deux fois.",
    totp_migration: `C’est un lien pour déplacer des comptes entre téléphones ; il ne contient pas de clé unique. ${HOW}`,
    totp_other_link: `C’est un lien, mais il ne commence pas par otpauth://totp/. ${HOW}`,
    totp_code: `Cela ressemble à un code d’une application d’authentification. Il faut la clé secrète qui produit les codes. ${HOW}`,
    totp_counter:
      "Cette clé produit des codes par comptage, ce qui n’est pas pris en charge. Il faut une clé pour des codes temporels.",
    totp_kind: `Le lien doit commencer par otpauth://totp/. ${HOW}`,
    totp_twice: `Le lien indique deux fois l’un de ses réglages. ${HOW}`,
    totp_encoder: "Le lien demande des codes d’un type particulier, qui n’est pas pris en charge.",
    totp_algorithm: "Le lien demande un autre algorithme que SHA1, SHA256 et SHA512.",
    totp_digits: "Le lien demande des codes qui n’ont pas de {min} à {max} chiffres.",
    totp_period: "Le lien demande des codes qui ne changent pas toutes les {min} à {max} secondes.",
    totp_no_key: `Le lien ne contient pas de clé secrète. ${HOW}`,
    totp_empty: `La clé secrète est vide. ${HOW}`,
    totp_letters: `Une clé secrète ne contient que les lettres A à Z et les chiffres 2 à 7. Il y a autre chose dans celle-ci. ${HOW}`,
    totp_length: `La clé secrète semble avoir un caractère de trop ou de moins. ${HOW}`,
    totp_short: `La clé secrète est trop courte pour être complète. ${HOW}`,
    certificate_none:
      "Il n’y a pas ici de certificat au format PEM, qui commence par -----BEGIN CERTIFICATE-----.",
    certificate_broken: "Ce certificat est illisible. Il est peut-être incomplet.",
    certificate_expired: "Ce certificat a expiré.",
    key_other: "Cette clé ne correspond pas au certificat.",
    key_none: "Il n’y a pas ici de clé privée au format PEM, qui commence par -----BEGIN PRIVATE KEY-----.",
    key_locked: "Cette clé est protégée par une phrase secrète, qui n’a pas été indiquée.",
    key_wrong_passphrase: "La clé ne s’ouvre pas avec cette phrase secrète.",
    key_broken: "Cette clé est illisible. Elle est peut-être incomplète.",
  },
};
