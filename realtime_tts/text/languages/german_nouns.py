"""The genders of German nouns, by words and endings."""

from __future__ import annotations

from realtime_tts.text.languages.rules import Genders

GENDERS = Genders(
    {
        "f": "-stunden -minuten -sekunden -wochen -personen -ung -heit -keit -schaft -ion -tät -ei"
        " -ik -ur -anz -enz -e -frau -nacht -stadt hand -person -bank -nachricht -wand -tür -zahl"
        " -zwiebel -erin -istin -entin -antin -mutter -tochter -schwester -nummer -butter oma"
        " -firma -pizza -kamera -cola -mail app -nuss -kuh -maus -gans -wurst -luft -kraft -fahrt"
        " -antwort -arbeit -zeit -welt uhr -freundin -kundin -ärztin -kollegin -regel -tafel"
        " -schüssel -kapsel -gabel -insel -nadel -kartoffel -box -party -sicht -schrift cd dvd",
        "n": "jahre -chen -lein -ment -um -nis -kind -buch -jahr -haus -auto -bild -glas -bier"
        " -brot ei -spiel -tor -wort -zimmer -bett -hotel -ticket -video -foto -problem -produkt"
        " -paar -stück -pfund -prozent -leben -mal -angebot -konto -restaurant -café -land -dorf"
        " -schiff -tier -pferd -schwein -huhn -schaf -messer -fenster -gebäude -ende -auge"
        " -semester -team -projekt -modell -system -gerät -handy bad -boot -dach -ding -fest -feld"
        " -geld -herz -kleid -licht -lied -loch -paket -quartal rad -fahrrad -rezept -telefon"
        " -unternehmen -wunder -ziel blatt -gramm -kilo -geschenk -getränk -drittel -viertel -büro"
        " -studio -pro -werk -sofa -interview -update -gemälde",
        "m": "-kaffee -tee -schnee -käse -kunde -junge -name -kollege -gedanke -buchstabe -hase"
        " -affe -löwe -neffe -zeuge -experte -franzose -deutsche -raum -baum -irrtum -reichtum"
        " -brei -moment tage monate -erwachsene",
    }
)
