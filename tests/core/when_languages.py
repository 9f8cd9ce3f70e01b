"""Times in seven languages, a row each, asked on Wednesday, 12 June 2024, at 15:30; and texts that name none."""

TIMES = {
    "es": """
¿Qué dijo Ana ayer? | 2024-06-11 2024-06-12
Anteayer hablamos del presupuesto | 2024-06-10 2024-06-11
Pasado mañana llega el técnico | 2024-06-14 2024-06-15
Mañana tengo dentista | 2024-06-13 2024-06-14
manana por la manana salimos | 2024-06-13T05:00 2024-06-13T12:00
Esta mañana se cayó el servidor | 2024-06-12T05:00 2024-06-12T12:00
Anoche no dormí nada | 2024-06-11T18:00 2024-06-12T06:00
¿Quién vino el lunes? | 2024-06-10 2024-06-11
La reunión es el próximo viernes | 2024-06-14 2024-06-15
Lo vemos el viernes de la semana que viene | 2024-06-21 2024-06-22
El viernes pasado cenamos juntos | 2024-06-07 2024-06-08
¿Qué decidimos la semana pasada? | 2024-06-03 2024-06-10
El mes que viene nos mudamos | 2024-07-01 2024-08-01
¿Vienes este fin de semana? | 2024-06-15 2024-06-17
Hace dos semanas vendí el coche | 2024-05-26 2024-06-02
El paquete llega dentro de tres días | 2024-06-15 2024-06-16
Nació el 5 de marzo de 2023 | 2023-03-05 2023-03-06
El 5/3 fuimos al médico | 2024-03-05 2024-03-06
En febrero estuvimos en Lima | 2024-02-01 2024-03-01
Hace 3 horas hablé con ella | 2024-06-12T12:00 2024-06-12T13:00
El año pasado vivía en Quito | 2023-01-01 2024-01-01
Quedamos mañana a las 5 de la tarde | 2024-06-13T17:00 2024-06-13T18:00
Hoy no puedo ir | 2024-06-12 2024-06-13
Te lo mando mañana sin falta | 2024-06-13 2024-06-14
¿Te acuerdas de lo que comimos antes de ayer? | 2024-06-10 2024-06-11
El domingo que viene es el cumple de Lola | 2024-06-16 2024-06-17
El examen será el 20 de septiembre | 2024-09-20 2024-09-21
Movieron la cita al jueves | 2024-06-06 2024-06-07
Vuelvo en una semana | 2024-06-16 2024-06-23
Firmamos el contrato el 12 de enero de 2022 | 2022-01-12 2022-01-13
La próxima semana estoy de vacaciones | 2024-06-17 2024-06-24
Esta noche hay partido | 2024-06-12T18:00 2024-06-13T06:00
Ayer por la tarde llamó tu madre | 2024-06-11T12:00 2024-06-11T18:00
Se rompió hace un mes | 2024-04-27 2024-05-28
El próximo año cambiamos de oficina | 2025-01-01 2026-01-01
¿Qué pasó el fin de semana pasado? | 2024-06-08 2024-06-10
A partir del 1 de julio suben los precios | 2023-07-01 2023-07-02
Entrega: 15/08/2024 | 2024-08-15 2024-08-16
La boda es el sábado 15 de junio | 2024-06-15 2024-06-16
En dos meses me jubilo | 2024-07-28 2024-08-28
A finales de mayo cerramos | 2024-05-21 2024-06-01
Nos conocimos el 3 de abril del año pasado | 2023-04-03 2023-04-04
""",
    "pt": """
O que a Ana disse ontem? | 2024-06-11 2024-06-12
Anteontem falamos do orçamento | 2024-06-10 2024-06-11
O técnico vem depois de amanhã | 2024-06-14 2024-06-15
Amanhã tenho dentista | 2024-06-13 2024-06-14
Saímos amanhã de manhã | 2024-06-13T05:00 2024-06-13T12:00
Hoje de manhã o servidor caiu | 2024-06-12T05:00 2024-06-12T12:00
Ontem à noite não dormi | 2024-06-11T18:00 2024-06-12T06:00
Quem veio na segunda-feira? | 2024-06-10 2024-06-11
A reunião é na próxima sexta | 2024-06-14 2024-06-15
Vemos isso na sexta-feira da semana que vem | 2024-06-21 2024-06-22
Na sexta passada jantamos juntos | 2024-06-07 2024-06-08
O que decidimos na semana passada? | 2024-06-03 2024-06-10
No mês que vem nos mudamos | 2024-07-01 2024-08-01
Você vem neste fim de semana? | 2024-06-15 2024-06-17
Há duas semanas vendi o carro | 2024-05-26 2024-06-02
Duas semanas atrás vendi o carro | 2024-05-26 2024-06-02
O pacote chega daqui a três dias | 2024-06-15 2024-06-16
Nasceu em 5 de março de 2023 | 2023-03-05 2023-03-06
No dia 5/3 fomos ao médico | 2024-03-05 2024-03-06
Em fevereiro estivemos no Porto | 2024-02-01 2024-03-01
Falei com ela há 3 horas | 2024-06-12T12:00 2024-06-12T13:00
No ano passado eu morava em Recife | 2023-01-01 2024-01-01
Combinado, amanhã às 17h | 2024-06-13T17:00 2024-06-13T18:00
Hoje nao posso ir | 2024-06-12 2024-06-13
Te mando isso amanhã sem falta | 2024-06-13 2024-06-14
Lembra o que comemos antes de ontem? | 2024-06-10 2024-06-11
Domingo que vem é o aniversário da Lola | 2024-06-16 2024-06-17
A prova será em 20 de setembro | 2024-09-20 2024-09-21
Mudaram a consulta para quinta-feira | 2024-06-06 2024-06-07
Volto em uma semana | 2024-06-16 2024-06-23
Assinamos o contrato no dia 12 de janeiro de 2022 | 2022-01-12 2022-01-13
Na próxima semana estou de férias | 2024-06-17 2024-06-24
Hoje à noite tem jogo | 2024-06-12T18:00 2024-06-13T06:00
Ontem à tarde sua mãe ligou | 2024-06-11T12:00 2024-06-11T18:00
Quebrou há um mês | 2024-04-27 2024-05-28
Ano que vem mudamos de escritório | 2025-01-01 2026-01-01
O que aconteceu no fim de semana passado? | 2024-06-08 2024-06-10
A partir de 1º de julho os preços sobem | 2023-07-01 2023-07-02
Entrega: 15/08/2024 | 2024-08-15 2024-08-16
Ela ligou meia hora atrás | 2024-06-12T14:56 2024-06-12T15:03
O casamento é no sábado, 15 de junho | 2024-06-15 2024-06-16
Desde segunda estou sem internet | 2024-06-10 2024-06-11
Na sexta à noite saímos | 2024-06-07T18:00 2024-06-08T06:00
""",
    "de": """
Was hat Anna gestern gesagt? | 2024-06-11 2024-06-12
Vorgestern haben wir über das Budget gesprochen | 2024-06-10 2024-06-11
Der Techniker kommt übermorgen | 2024-06-14 2024-06-15
Morgen habe ich einen Zahnarzttermin | 2024-06-13 2024-06-14
Wir fahren morgen früh los | 2024-06-13T05:00 2024-06-13T12:00
Heute Morgen ist der Server abgestürzt | 2024-06-12T05:00 2024-06-12T12:00
Gestern Abend war ich müde | 2024-06-11T17:00 2024-06-12
Wer war am Montag da? | 2024-06-10 2024-06-11
Das Treffen ist nächsten Freitag | 2024-06-21 2024-06-22
Wir sehen uns Freitag nächster Woche | 2024-06-21 2024-06-22
Letzten Freitag waren wir essen | 2024-06-07 2024-06-08
Was haben wir letzte Woche entschieden? | 2024-06-03 2024-06-10
Naechsten Monat ziehen wir um | 2024-07-01 2024-08-01
Kommst du dieses Wochenende? | 2024-06-15 2024-06-17
Vor zwei Wochen habe ich das Auto verkauft | 2024-05-26 2024-06-02
Das Paket kommt in drei Tagen | 2024-06-15 2024-06-16
Heute in acht Tagen ist Abgabe | 2024-06-19 2024-06-20
Er ist am 5. März 2023 geboren | 2023-03-05 2023-03-06
Am 5.3. waren wir beim Arzt | 2024-03-05 2024-03-06
Im Februar waren wir in Wien | 2024-02-01 2024-03-01
Vor 3 Stunden habe ich mit ihr geredet | 2024-06-12T12:00 2024-06-12T13:00
Letztes Jahr wohnte ich in Bern | 2023-01-01 2024-01-01
Treffen wir uns morgen um 17 Uhr | 2024-06-13T17:00 2024-06-13T18:00
Heute kann ich nicht | 2024-06-12 2024-06-13
Am Sonnabend ist die Feier | 2024-06-08 2024-06-09
Ich schicke es dir morgen | 2024-06-13 2024-06-14
Weißt du noch, was wir vorgestern gegessen haben? | 2024-06-10 2024-06-11
Kommenden Sonntag hat Lola Geburtstag | 2024-06-16 2024-06-17
Die Prüfung ist am 20. September | 2023-09-20 2023-09-21
Der Termin wurde auf Donnerstag verschoben | 2024-06-06 2024-06-07
In einer Woche bin ich zurück | 2024-06-16 2024-06-23
Wir haben den Vertrag am 12. Januar 2022 unterschrieben | 2022-01-12 2022-01-13
Nächste Woche habe ich Urlaub | 2024-06-17 2024-06-24
Heute Abend ist Spiel | 2024-06-12T17:00 2024-06-13
Gestern Nachmittag hat deine Mutter angerufen | 2024-06-11T12:00 2024-06-11T18:00
Es ging vor einem Monat kaputt | 2024-04-27 2024-05-28
Nächstes Jahr ziehen wir ins neue Büro | 2025-01-01 2026-01-01
Was war letztes Wochenende los? | 2024-06-08 2024-06-10
Ab dem 1. Juli steigen die Preise | 2023-07-01 2023-07-02
Abgabe: 15.08.2024 | 2024-08-15 2024-08-16
Die Hochzeit ist am Samstag, dem 15. Juni | 2024-06-15 2024-06-16
Freitagabend gehen wir aus | 2024-06-07T17:00 2024-06-08
Ende Mai machen wir zu | 2024-05-21 2024-06-01
Sie hat vor einer halben Stunde angerufen | 2024-06-12T14:56 2024-06-12T15:03
""",
    "fr": """
Qu'est-ce qu'Anna a dit hier ? | 2024-06-11 2024-06-12
Avant-hier on a parlé du budget | 2024-06-10 2024-06-11
Le technicien vient après-demain | 2024-06-14 2024-06-15
Demain j'ai rendez-vous chez le dentiste | 2024-06-13 2024-06-14
On part demain matin | 2024-06-13T05:00 2024-06-13T12:00
Ce matin le serveur est tombé | 2024-06-12T05:00 2024-06-12T12:00
Hier soir je n'ai pas dormi | 2024-06-11T17:00 2024-06-12
Qui est venu lundi ? | 2024-06-10 2024-06-11
La réunion est vendredi prochain | 2024-06-14 2024-06-15
On se voit le vendredi de la semaine prochaine | 2024-06-21 2024-06-22
Vendredi dernier on a dîné ensemble | 2024-06-07 2024-06-08
Qu'avons-nous décidé la semaine dernière ? | 2024-06-03 2024-06-10
Le mois prochain nous déménageons | 2024-07-01 2024-08-01
Tu viens ce week-end ? | 2024-06-15 2024-06-17
J'ai vendu la voiture il y a deux semaines | 2024-05-26 2024-06-02
Le colis arrive dans trois jours | 2024-06-15 2024-06-16
Il est né le 5 mars 2023 | 2023-03-05 2023-03-06
Le 05/03 nous étions chez le médecin | 2024-03-05 2024-03-06
En fevrier nous étions à Lyon | 2024-02-01 2024-03-01
Je lui ai parlé il y a 3 heures | 2024-06-12T12:00 2024-06-12T13:00
L'année dernière j'habitais à Lille | 2023-01-01 2024-01-01
Rendez-vous demain à 17h | 2024-06-13T17:00 2024-06-13T18:00
Aujourd'hui je ne peux pas | 2024-06-12 2024-06-13
Le rapport est dû d’ici quinze jours | 2024-06-23 2024-06-30
Je te l'envoie demain sans faute | 2024-06-13 2024-06-14
Tu te souviens de ce qu'on a mangé avant-hier ? | 2024-06-10 2024-06-11
Dimanche prochain c'est l'anniversaire de Lola | 2024-06-16 2024-06-17
L'examen aura lieu le 20 septembre | 2024-09-20 2024-09-21
Le rendez-vous est déplacé à jeudi | 2024-06-13 2024-06-14
Je reviens dans une semaine | 2024-06-16 2024-06-23
On a signé le contrat le 12 janvier 2022 | 2022-01-12 2022-01-13
La semaine prochaine je suis en congé | 2024-06-17 2024-06-24
Ce soir il y a match | 2024-06-12T17:00 2024-06-13
Hier après-midi ta mère a appelé | 2024-06-11T12:00 2024-06-11T18:00
Ça s'est cassé il y a un mois | 2024-04-27 2024-05-28
L'an prochain on change de bureaux | 2025-01-01 2026-01-01
Que s'est-il passé le week-end dernier ? | 2024-06-08 2024-06-10
À partir du 1er juillet les prix montent | 2023-07-01 2023-07-02
Remise : 15/08/2024 | 2024-08-15 2024-08-16
Le mariage est le samedi 15 juin | 2024-06-15 2024-06-16
Fin mai on ferme | 2024-05-21 2024-06-01
Ce mois-ci on a trop dépensé | 2024-06-01 2024-07-01
On se revoit en quinze jours | 2024-06-23 2024-06-30
""",
    "ru": """
Что вчера сказала Аня? | 2024-06-11 2024-06-12
Позавчера мы говорили о бюджете | 2024-06-10 2024-06-11
Мастер придёт послезавтра | 2024-06-14 2024-06-15
Завтра у меня стоматолог | 2024-06-13 2024-06-14
Выезжаем завтра утром | 2024-06-13T05:00 2024-06-13T12:00
Сегодня утром упал сервер | 2024-06-12T05:00 2024-06-12T12:00
Вчера вечером я устал | 2024-06-11T17:00 2024-06-12
Кто приходил в понедельник? | 2024-06-10 2024-06-11
Встреча в следующую пятницу | 2024-06-21 2024-06-22
Увидимся в пятницу на следующей неделе | 2024-06-21 2024-06-22
В прошлую пятницу мы ужинали вместе | 2024-06-07 2024-06-08
Что мы решили на прошлой неделе? | 2024-06-03 2024-06-10
В следующем месяце переезжаем | 2024-07-01 2024-08-01
Приедешь в эти выходные? | 2024-06-15 2024-06-17
Две недели назад я продал машину | 2024-05-26 2024-06-02
Посылка будет через три дня | 2024-06-15 2024-06-16
Он родился 5 марта 2023 года | 2023-03-05 2023-03-06
05.03 были у врача | 2024-03-05 2024-03-06
В феврале мы были в Казани | 2024-02-01 2024-03-01
Я говорил с ней 3 часа назад | 2024-06-12T12:00 2024-06-12T13:00
В прошлом году я жил в Омске | 2023-01-01 2024-01-01
Давай завтра в 17:00 | 2024-06-13T16:45 2024-06-13T17:15
Сегодня не могу | 2024-06-12 2024-06-13
Пришлю тебе завтра обязательно | 2024-06-13 2024-06-14
Помнишь, что мы ели позавчера? | 2024-06-10 2024-06-11
В следующее воскресенье день рождения у Лолы | 2024-06-23 2024-06-24
Экзамен 20 сентября | 2023-09-20 2023-09-21
Встречу перенесли на четверг | 2024-06-06 2024-06-07
Вернусь через неделю | 2024-06-16 2024-06-23
Мы подписали договор 12 января 2022 года | 2022-01-12 2022-01-13
На следующей неделе я в отпуске | 2024-06-17 2024-06-24
Сегодня вечером матч | 2024-06-12T17:00 2024-06-13
Вчера днём звонила твоя мама | 2024-06-11T12:00 2024-06-11T18:00
Сломалось месяц назад | 2024-04-27 2024-05-28
В следующем году меняем офис | 2025-01-01 2026-01-01
Что было на прошлых выходных? | 2024-06-08 2024-06-10
С 1 июля цены вырастут | 2023-07-01 2023-07-02
Срок сдачи: 15.08.2024 | 2024-08-15 2024-08-16
Свадьба в субботу, 15 июня | 2024-06-15 2024-06-16
Она звонила полчаса назад | 2024-06-12T14:56 2024-06-12T15:03
В конце мая закрываемся | 2024-05-21 2024-06-01
Мы познакомились 3 апреля прошлого года | 2023-04-03 2023-04-04
""",
    "ja": """
昨日アンナは何と言いましたか？ | 2024-06-11 2024-06-12
おととい予算の話をした | 2024-06-10 2024-06-11
業者は明後日に来ます | 2024-06-14 2024-06-15
あさっては休みです | 2024-06-14 2024-06-15
明日は歯医者があります | 2024-06-13 2024-06-14
明日の朝に出発します | 2024-06-13T05:00 2024-06-13T12:00
今朝サーバーが落ちた | 2024-06-12T05:00 2024-06-12T12:00
昨夜は眠れなかった | 2024-06-11T18:00 2024-06-12T06:00
月曜日に誰が来た？ | 2024-06-10 2024-06-11
会議は次の金曜日です | 2024-06-14 2024-06-15
来週の金曜日に会いましょう | 2024-06-21 2024-06-22
先週の金曜日に食事した | 2024-06-07 2024-06-08
先週何を決めましたか | 2024-06-03 2024-06-10
来月引っ越します | 2024-07-01 2024-08-01
今週末は来る？ | 2024-06-15 2024-06-17
二週間前に車を売った | 2024-05-26 2024-06-02
荷物は3日後に届きます | 2024-06-15 2024-06-16
2023年3月5日に生まれた | 2023-03-05 2023-03-06
3月5日に病院へ行った | 2024-03-05 2024-03-06
2月に京都へ行きました | 2024-02-01 2024-03-01
3時間前に彼女と話した | 2024-06-12T12:00 2024-06-12T13:00
去年は大阪に住んでいた | 2023-01-01 2024-01-01
明日の午後5時に会いましょう | 2024-06-13T17:00 2024-06-13T18:00
今日は行けません | 2024-06-12 2024-06-13
明日必ず送ります | 2024-06-13 2024-06-14
一昨日何を食べたか覚えてる？ | 2024-06-10 2024-06-11
今度の日曜日はローラの誕生日だ | 2024-06-16 2024-06-17
試験は9月20日です | 2023-09-20 2023-09-21
打ち合わせは木曜日に変更になりました | 2024-06-06 2024-06-07
一週間後に戻ります | 2024-06-16 2024-06-23
契約は2022年1月12日に結んだ | 2022-01-12 2022-01-13
来週は休暇です | 2024-06-17 2024-06-24
今晩は試合がある | 2024-06-12T17:00 2024-06-13
昨日の午後お母さんから電話があった | 2024-06-11T12:00 2024-06-11T18:00
一か月前に壊れた | 2024-04-27 2024-05-28
来年事務所を移ります | 2025-01-01 2026-01-01
先週末は何があったの？ | 2024-06-08 2024-06-10
7月1日から値上げします | 2023-07-01 2023-07-02
提出は2024年8月15日まで | 2024-08-15 2024-08-16
結婚式は6月15日（土）です | 2024-06-15 2024-06-16
金曜の夜に出かけよう | 2024-06-07T17:00 2024-06-08
去年の4月3日に知り合った | 2023-04-03 2023-04-04
5月末に閉店した | 2024-05-21 2024-06-01
""",
    "ko": """
어제 안나가 뭐라고 했어? | 2024-06-11 2024-06-12
그저께 예산 이야기를 했어 | 2024-06-10 2024-06-11
기사님이 모레 오세요 | 2024-06-14 2024-06-15
내일 치과 예약이 있어 | 2024-06-13 2024-06-14
내일 아침에 출발해 | 2024-06-13T05:00 2024-06-13T12:00
오늘 아침에 서버가 죽었어 | 2024-06-12T05:00 2024-06-12T12:00
어젯밤에 잠을 못 잤어 | 2024-06-11T18:00 2024-06-12T06:00
월요일에 누가 왔어? | 2024-06-10 2024-06-11
다음 주 금요일에 만나자 | 2024-06-21 2024-06-22
이번 주 금요일에 회의가 있어 | 2024-06-14 2024-06-15
지난주 금요일에 같이 저녁 먹었어 | 2024-06-07 2024-06-08
지난 주에 뭘 결정했지? | 2024-06-03 2024-06-10
다음 달에 이사해 | 2024-07-01 2024-08-01
이번 주말에 올 거야? | 2024-06-15 2024-06-17
2주 전에 차를 팔았어 | 2024-05-26 2024-06-02
택배는 사흘 뒤에 와 | 2024-06-15 2024-06-16
2023년 3월 5일에 태어났어 | 2023-03-05 2023-03-06
3월 5일에 병원에 갔어 | 2024-03-05 2024-03-06
2월에 부산에 있었어 | 2024-02-01 2024-03-01
세 시간 전에 통화했어 | 2024-06-12T12:00 2024-06-12T13:00
작년에는 대구에 살았어 | 2023-01-01 2024-01-01
내일 오후 5시에 보자 | 2024-06-13T17:00 2024-06-13T18:00
오늘은 못 가 | 2024-06-12 2024-06-13
내일 꼭 보내 줄게 | 2024-06-13 2024-06-14
그제 뭐 먹었는지 기억나? | 2024-06-10 2024-06-11
다음 주 일요일이 로라 생일이야 | 2024-06-23 2024-06-24
시험은 9월 20일이야 | 2023-09-20 2023-09-21
회의가 목요일로 바뀌었어 | 2024-06-06 2024-06-07
일주일 뒤에 돌아와 | 2024-06-16 2024-06-23
2022년 1월 12일에 계약했어 | 2022-01-12 2022-01-13
다음주는 휴가야 | 2024-06-17 2024-06-24
오늘 저녁에 경기가 있어 | 2024-06-12T17:00 2024-06-13
어제 오후에 어머니가 전화하셨어 | 2024-06-11T12:00 2024-06-11T18:00
한 달 전에 고장 났어 | 2024-04-27 2024-05-28
내년에 사무실을 옮겨 | 2025-01-01 2026-01-01
지난 주말에 무슨 일이 있었어? | 2024-06-08 2024-06-10
7월 1일부터 가격이 올라요 | 2023-07-01 2023-07-02
마감은 2024년 8월 15일이야 | 2024-08-15 2024-08-16
결혼식은 6월 15일 토요일이야 | 2024-06-15 2024-06-16
금요일 저녁에 나가자 | 2024-06-14T17:00 2024-06-15
작년 4월 3일에 처음 만났어 | 2023-04-03 2023-04-04
5월 말에 문 닫았어 | 2024-05-21 2024-06-01
""",
}

NO_TIMES = {
    "es": """
Domingo viene con su hermana
Vivimos en Santo Domingo
Trabajo por la mañana y estudio por la tarde
Me encanta la mañana en la playa
Los lunes voy al gimnasio
Todos los viernes pedimos pizza
Julio no contesta el teléfono
Abril es mi prima
La versión 5.3 tiene un fallo
Ganaron 3 a 1
Quedaron 3:1
Cuesta 5/3 de lo normal
Marte es el planeta rojo
Espera un segundo
El mar está tranquilo
Tengo tres días de vacaciones
Trabaja 8 horas al día
El próximo paso es probarlo
La última vez no funcionó
Vive en la calle 5 de Mayo
Dormí seis horas
Buenos días a todos
Los domingos vamos a misa
Buenas noches, hasta luego
Mayo se llama mi perro
Compré dos metros y medio de tela
El año tiene doce meses
Trabajo de lunes a viernes normalmente
Queda en la página 15
Es la segunda vez que lo digo
Una semana no alcanza
Plácido Domingo cantó bien
""",
    "pt": """
Domingos joga no meio-campo
Trabalho de manhã e estudo à tarde
Adoro a manhã na praia
Às segundas vou ao ginásio
Toda sexta pedimos pizza
A segunda vez foi melhor
Na segunda parte do jogo perdemos
Júlio não atende o telefone
A versão 5.3 tem um erro
Ganharam 3 a 1
Ficou 3:1
Marte é o planeta vermelho
O Marco chegou atrasado
Confio em Marco
Tenho três dias de férias
Trabalha 8 horas por dia
O próximo passo é testar
A última vez não funcionou
Dormi seis horas
Bom dia a todos
Ela mora numa quinta em Sintra
Na quarta fila há lugar
Aos domingos vamos à missa
Boa noite, até logo
Maio é o nome do meu cachorro
Comprei dois metros e meio de pano
O ano tem doze meses
A sexta edição saiu
Está na página 15
Na terceira tentativa deu certo
Uma semana não basta
Domingos Sousa cantou bem
""",
    "de": """
Guten Morgen zusammen
Morgen!
Am Morgen trinke ich Kaffee
Jeden Morgen jogge ich
Montags gehe ich schwimmen
Jeden Freitag gibt es Pizza
Herr Sonntag hat angerufen
August Müller ruft zurück
Version 5.3 hat einen Fehler
Wir haben 3:1 gewonnen
Das kostet 5.30 Euro
Ich bin hier
Warte eine Sekunde
Ich habe drei Tage Urlaub
Er arbeitet 8 Stunden am Tag
Der nächste Schritt ist ein Test
Letztes Mal ging es nicht
Punkt 5.3. der Liste fehlt
Ich habe sechs Stunden geschlafen
Schönen Abend noch
Das ist das Haus von heute auf morgen nicht zu bauen
Mai heißt meine Katze
Sonntags gehen wir in die Kirche
Gute Nacht, bis dann
Mein Hund heißt Mai
Ich habe zwei Meter Stoff gekauft
Das Jahr hat zwölf Monate
Er ist ein Morgenmensch
Das steht auf Seite 15
Beim zweiten Mal hat es geklappt
Eine Woche reicht nicht
Frau Sommer hat gut gesungen
""",
    "fr": """
Mars est la planète rouge
Une barre de Mars coûte un euro
Mai est le prénom de ma fille
Le matin je bois un café
J'aime le matin à la plage
Tous les vendredis on mange une pizza
Chaque lundi je nage
Le lundi je vais à la piscine
La version 5.3 a un bug
On a gagné 3 à 1
Le score est de 3:1
Attends une seconde
J'ai trois jours de vacances
Il travaille 8 heures par jour
La prochaine étape est un test
La dernière fois ça n'a pas marché
J'ai dormi six heures
Bonne nuit à tous
Le plat du jour est bon
Ça coûte 5,30 euros
Il habite rue du 8 mai 1945
Le dimanche on va à la messe
Bonne soirée, à plus
Mon chien s'appelle Avril
J'ai acheté deux mètres de tissu
L'année a douze mois
Il est du matin
C'est à la page 15
La deuxième fois a marché
Une semaine ne suffit pas
Monsieur Dimanche chante bien
""",
    "ru": """
Майя приедет с сестрой
Марта не отвечает
Утром я пью кофе
Доброе утро всем
По понедельникам я плаваю
Каждую пятницу заказываем пиццу
Версия 5.3 с ошибкой
Мы выиграли 3:1
Это вредит окружающей среде
Попали в агрессивную среду
Завтрак готов
Подожди секунду
У меня три дня отпуска
Он работает 8 часов в день
Следующий шаг это проверка
В прошлый раз не сработало
Я спал шесть часов
Это стоит 5.30 рубля
Марс красная планета
Всем добрый вечер
Недельный билет дешевле
Назад дороги нет
По воскресеньям ходим в церковь
Спокойной ночи, до встречи
Мою собаку зовут Майка
Купила два метра ткани
В году двенадцать месяцев
Он жаворонок, встаёт рано
Это на странице 15
Во второй раз получилось
Одной недели не хватит
В среде программистов так принято
""",
    "ja": """
今日子さんは来ません
明日香に聞いて
毎週月曜日はジムに行く
毎朝コーヒーを飲む
日曜大工が好きです
バージョン5.3に不具合がある
3対1で勝った
おはようございます
ちょっと待って
三日間の休みがある
一日8時間働く
次の手順はテストです
前回はうまくいかなかった
六時間寝ました
こんばんは
機能を追加しました
きのこを買ってきて
価格は530円です
兄弟がいます
5番線で待って
月がきれいですね
週に三回走ります
毎週日曜日は教会に行く
おやすみなさい、またね
五月さんは私の友達です
布を二メートル買った
一年は十二ヶ月です
彼は朝型人間だ
15ページにあります
二回目でうまくいった
一週間では足りない
土日祝は休業です
""",
    "ko": """
매주 월요일에 수영해
금요일마다 피자를 시켜
아침에는 커피를 마셔
좋은 아침이에요
버전 5.3에 오류가 있어
3대 1로 이겼어
잠깐만 기다려
휴가가 사흘이야
하루에 8시간 일해
다음 단계는 테스트야
지난번에는 안 됐어
여섯 시간 잤어
모래가 많아
오늘날 사람들은 바빠
가격은 5300원이야
이월 상품 할인
화성은 붉은 행성이야
안녕히 주무세요
3층으로 와
일주일에 세 번 뛰어
내 일은 재미있어
주말마다 등산해
일요일마다 교회에 가
잘 자, 또 봐
우리 강아지 이름은 오월이야
천을 2미터 샀어
일 년은 열두 달이야
그는 아침형 인간이야
15쪽에 있어
두 번째에 성공했어
일주일로는 부족해
매월 회비를 내
""",
}
