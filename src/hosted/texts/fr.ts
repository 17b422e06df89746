import type { Texts } from "./texts.ts";

const HOW = "Copiez la clé affichée à côté du code QR, ou le lien otpauth:// complet.";

export const fr: Texts = {
  language: "Langue",
  foot: "Page de connexion sécurisée par Latchkey",
  help: "Aide de {account}",
  error_title: "Erreur : {title}",
  test_mode: "Mode test",
  test_note: "Rien de ce qui est saisi ici n’est envoyé à un système réel.",
  test_values: "Valeurs de test",

  connect_title: "Connecter {system}",
  asks: "{account} souhaite se connecter à votre compte {system}.",
  sign_in_there:
    "Vous vous connectez et donnez votre accord sur {host}, puis vous revenez ici. Ce que vous saisissez là-bas y reste.",
  used_at: "Utilisé seulement sur",
  stored_how: "Conservé sous forme chiffrée. {account} ne voit jamais ce que vous saisissez.",
  stored_how_there: "Seule l’autorisation donnée là-bas est conservée, chiffrée.",
  facts_again: "Comment votre accès est utilisé",
  goes_back: "Ensuite, vous revenez sur {host}.",
  optional: "(facultatif)",
  fields_more: "Informations facultatives",
  please_choose: "Veuillez choisir",
  error: "Erreur :",
  connect: "Connecter",
  continue_to: "Continuer vers {host}",
  back_to: "Retour à {account}",
  caution: "Si vous ne venez pas de {account}, fermez cette page : rien n’a été transmis.",
  elsewhere_heading: "Ce lien a déjà été ouvert dans un autre navigateur",
  elsewhere_you: "Si c’est vous qui l’y avez ouvert, continuez simplement.",
  elsewhere_other:
    "Si quelqu’un vous a transmis ce lien, fermez cette page. Ce que vous saisissez ici serait rattaché à cette personne, et non à vous : {account} a créé le lien pour une seule personne.",
  check_entries: "Veuillez vérifier votre saisie",
  secrets_again:
    "Les mots de passe et autres valeurs secrètes ne sont pas remplis à nouveau. Veuillez les saisir encore une fois.",
  not_connected: "{system} n’est pas connecté",
  refused:
    "La connexion y a été annulée ou refusée. Rien n’a été enregistré. Vous pouvez réessayer ci-dessous ou fermer cette page.",
  failed_heading: "La connexion n’a pas pu aboutir",
  failed:
    "C’était un problème technique, pas une erreur de votre part. Rien n’a été enregistré. Veuillez réessayer ci-dessous.",
  failed_again: "Si cela échoue de nouveau, prévenez {account}.",
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
  unsent:
    "Rien n’a été envoyé, et votre saisie est toujours là. Veuillez vérifier votre connexion Internet et réessayer.",
  totp_why:
    "Nécessaire seulement si vous vous connectez avec des codes à 6 chiffres d’une application. C’est la clé avec laquelle elle a été configurée, et non l’un des codes.",
  totp_help:
    "Dans les paramètres de sécurité de votre compte, là où l’on configure une application d’authentification. La clé est la longue suite de lettres et de chiffres à côté du code QR ; le lien otpauth:// complet convient aussi.",
  totp_where: "Où la trouver ?",
  qr_choose: "Scanner une image du code QR",
  qr_local: "L’image reste sur votre appareil.",
  qr_reading: "Lecture de l’image…",
  qr_found: "La clé a été lue dans l’image.",
  qr_none:
    "Aucun code QR d’application d’authentification n’a été trouvé dans cette image. Essayez une image plus nette, ou saisissez la clé.",

  checking_heading: "Vérification auprès de {system}…",
  checking:
    "Vos identifiants sont essayés auprès de {system}. Cela ne prend en général que quelques secondes. Veuillez laisser cette page ouverte.",
  checking_look: "Voir le résultat",
  rejected_heading: "{system} n’a pas accepté ces identifiants",
  rejected: "Rien n’a été enregistré. Veuillez vérifier votre saisie et réessayer.",
  limited_heading: "{system} a refusé plusieurs connexions",
  limited:
    "Pour que votre compte n’y soit pas bloqué, aucune autre connexion n’est essayée pour l’instant, et rien n’a été enregistré. En attendant, vérifiez que vous pouvez vous connecter directement à {system}.",
  again_when: "Vous pourrez réessayer {when}.",
  too_often:
    "Trop de formulaires ont été envoyés en peu de temps ; celui-ci n’a donc pas été accepté. Rien n’a été enregistré.",
  accepted: "{system} a accepté vos identifiants. {account} peut maintenant les utiliser.",
  unanswered: "{system} n’a pas répondu à temps si les identifiants sont corrects.",

  success_heading: "Vos identifiants sont enregistrés",
  success:
    "Vos identifiants {system} sont conservés en lieu sûr. Ils seront essayés lorsque {account} les utilisera pour la première fois.",
  success_again: "Si {system} ne les accepte pas, {account} en est informé et pourra vous les redemander.",
  connected: "{system} est connecté",
  connected_how:
    "{system} a accepté votre connexion. {account} peut utiliser l’autorisation que vous y avez donnée.",
  go_on: "Vous pouvez maintenant continuer avec {account}.",
  close_now: "Vous pouvez fermer cette page.",
  used_heading: "Ce lien a déjà été utilisé",
  used: "Le formulaire correspondant a été rempli et envoyé. Si c’était vous, il ne reste rien à faire : vous pouvez fermer cette page.",
  used_other: "Si ce n’était pas vous, prévenez les personnes qui vous ont envoyé le lien.",
  used_other_of: "Si ce n’était pas vous, prévenez {account}.",
  expired_heading: "Ce lien a expiré",
  expired: "Un lien n’est valable que pendant un temps limité. Rien n’a été enregistré.",
  ask_again: "Retournez à l’application qui vous a envoyé ici et recommencez pour obtenir un nouveau lien.",
  ask_again_of: "Retournez chez {account} et recommencez pour obtenir un nouveau lien.",
  typed_heading: "Ce que vous aviez saisi",
  typed: "Vous pouvez le copier d’ici ; les valeurs secrètes ne sont pas affichées.",
  unknown_heading: "Ce lien ne fonctionne pas",
  unknown:
    "Il manque peut-être une partie de l’adresse, par exemple si un message l’a coupée sur deux lignes. Veuillez copier le lien en entier et l’ouvrir de nouveau.",
  unknown_next:
    "Si cela ne suffit pas, demandez un nouveau lien à la personne qui vous l’a envoyé. Rien n’a été enregistré ici.",
  return_heading: "Cette connexion ne peut pas continuer",
  return_unknown:
    "Elle a été commencée dans un autre navigateur ou a duré trop longtemps. Rien n’a été connecté.",
  return_spent:
    "Vous en êtes déjà revenu une fois, et chaque connexion ne compte qu’une fois. Rien n’a été connecté cette fois-ci.",
  return_next: "Veuillez rouvrir votre lien et recommencer à partir de là.",
  forbidden_heading: "Veuillez remplir à nouveau le formulaire",
  forbidden:
    "Ce qui a été envoyé ne venait pas de la page de ce lien, ou cette page était trop ancienne. L’envoi n’a donc pas été accepté, et rien n’a été enregistré.",
  forbidden_next: "Veuillez rouvrir votre lien et y remplir le formulaire.",
  too_large_heading: "C’est trop volumineux pour être envoyé",
  too_large: "Votre saisie dépasse ce que ce formulaire peut recevoir. Rien n’a été enregistré.",
  too_large_of: "« {field} » dépasse ce que ce formulaire peut recevoir. Rien n’a été enregistré.",
  too_large_next: "Veuillez rouvrir votre lien et vérifier que vous collez le bon contenu.",
  problem_heading: "Un problème est survenu de notre côté",
  problem: "Veuillez patienter une minute, puis rouvrir votre lien.",
  problem_saved:
    "Si le lien indique alors qu’il a déjà été utilisé, votre accès a été enregistré. Sinon, rien ne l’a été.",
  problem_nothing: "Rien n’a été enregistré.",
  problem_done: "Vos identifiants ont tout de même été enregistrés : il ne vous reste rien à faire ici.",
  open_again: "Rouvrir le lien",

  picker_heading: "Que souhaitez-vous connecter ?",
  picker_lead: "{account} peut utiliser ces services pour vous. Choisissez par lequel commencer.",
  choose_other: "Choisir autre chose",
  step_of: "Étape {number} sur {count}",
  next_is: "Ensuite : {system}",
  cancel: "Annuler",
  close: "Fermer",
  done: "Terminer",
  needs_script:
    "Ce formulaire a besoin de JavaScript. Veuillez l’autoriser pour cette page, puis la recharger.",
  loading: "Chargement…",
  window_heading: "Continuez dans l’autre fenêtre",
  window_lead:
    "Connectez-vous sur {host} dans la fenêtre qui s’est ouverte. Cette page continuera d’elle-même ensuite.",
  window_blocked: "Votre navigateur n’a pas ouvert la fenêtre. Ouvrez-la avec le bouton ci-dessous.",
  window_opening: "Ouverture de la page de connexion…",
  window_open: "Ouvrir {host}",
  window_again: "Ouvrir de nouveau la fenêtre",
  start_over: "Recommencer",
  window_back: "Vous pouvez fermer cette fenêtre et continuer sur la page d’où vous venez.",
  close_window: "Fermer cette fenêtre",
  window_refused: "Vous y avez annulé ou n’avez pas donné votre accord. Rien n’a été enregistré.",
  window_failed: "C’était un problème technique, pas une erreur de votre part. Rien n’a été enregistré.",
  window_retry: "Fermez cette fenêtre et réessayez sur la page d’où vous venez.",
  window_cut_off_heading: "Cette fenêtre n’est pas nécessaire",
  window_cut_off: "La connexion n’a pas encore eu lieu ici, et rien n’a été enregistré.",
  frame_caution: "Si vous n’attendiez pas cela de {account}, annulez : rien n’a été transmis.",
  frame_refused:
    "La connexion y a été annulée ou refusée. Rien n’a été enregistré. Vous pouvez réessayer ci-dessous ou annuler.",
  frame_expired_heading: "Le délai est écoulé",
  frame_expired:
    "Plus rien ne peut être saisi ici, et rien de plus n’a été enregistré. Veuillez fermer et recommencer.",
  frame_used_heading: "C’est déjà fait",
  frame_used: "Vos identifiants ont déjà été reçus. Il n’y a plus rien à faire ici.",
  frame_limit_heading: "Trop de tentatives",
  frame_limit:
    "Ce formulaire a été envoyé trop souvent et n’accepte plus rien. Rien de plus n’a été enregistré. Fermez-le et recommencez : vous n’avez pas besoin d’attendre.",
  frame_unknown_heading: "Impossible d’ouvrir ceci",
  frame_unknown:
    "Cela appartient à une autre page ou n’est plus valable. Rien n’a été enregistré. Fermez, rechargez la page et recommencez.",
  frame_problem: "Rien de plus n’a été enregistré. Veuillez réessayer dans une minute.",
  offline_heading: "La connexion a été perdue",
  offline: "Veuillez vérifier votre connexion Internet et réessayer.",
  offline_kept:
    "Ce que vous avez saisi est toujours là. Vous pouvez l’envoyer de nouveau sans risque : rien n’est enregistré deux fois.",
  try_again: "Réessayer",

  issues: {
    required: "{field} : ce champ est obligatoire.",
    must_tick: "Cochez la case pour confirmer : {field}",
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
    totp_code: `Cela ressemble à un code d’une application d’authentification. Saisissez plutôt la clé de configuration, à partir de laquelle les codes sont générés. ${HOW}`,
    totp_counter:
      "Cette clé sert à des codes basés sur un compteur, qui ne sont pas pris en charge. Utilisez une clé pour des codes basés sur l’heure.",
    totp_kind: `Le lien doit commencer par otpauth://totp/. ${HOW}`,
    totp_twice: `Le lien indique deux fois l’un de ses réglages. ${HOW}`,
    totp_encoder: "Le lien correspond à un type de codes particulier, qui n’est pas pris en charge.",
    totp_algorithm: "Le lien demande un autre algorithme que SHA1, SHA256 et SHA512.",
    totp_digits: "Le lien demande des codes qui n’ont pas de {min} à {max} chiffres.",
    totp_period: "Le lien demande des codes qui ne changent pas toutes les {min} à {max} secondes.",
    totp_no_key: `Le lien ne contient pas de clé secrète. ${HOW}`,
    totp_empty: `La clé secrète est vide. ${HOW}`,
    totp_letters: `Une clé secrète ne contient que les lettres A à Z et les chiffres 2 à 7. Celle-ci contient d’autres caractères. ${HOW}`,
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
